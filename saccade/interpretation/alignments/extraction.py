"""Extraction: hard links from soft weights."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor

Link = tuple[int, int]
"""(source, target), counted from 0."""


def align(weights: Tensor) -> list[Link]:
    """(source, target) for each target step: its most attended position. A step without any weight has no link.

    Shapes:
        weights (target, source).
    """
    _check(weights, "weights", "(target, source)")
    if weights.numel() == 0:
        return []
    most, place = weights.max(dim=-1)
    return [(j, i) for i, (j, weight) in enumerate(zip(place.tolist(), most.tolist(), strict=True)) if weight > 0]


def align_above(weights: Tensor, threshold: float) -> list[Link]:
    """Every (source, target) whose weight is at least the threshold: any number per step.

    Shapes:
        weights (target, source).
    """
    _check(weights, "weights", "(target, source)")
    if not threshold > 0:
        raise ValueError(f"threshold must be above 0, got {threshold}: otherwise every pair would be a link.")
    return [(j, i) for i, j in (weights >= threshold).nonzero().tolist()]


def align_mutual(forward: Tensor, backward: Tensor | None = None) -> list[Link]:
    """(source, target) for words that attend to each other most: few links, but mostly right.

    Args:
        forward: (target, source).
        backward: (source, target), from a model of the other direction; by default, the columns of `forward`.
    """
    _check(forward, "forward", "(target, source)")
    back = forward.T if backward is None else backward
    _check(back, "backward", "(source, target)")
    if back.shape != forward.T.shape:
        raise ValueError(
            f"backward must be (source, target) = {tuple(forward.T.shape)} for forward {tuple(forward.shape)}, got "
            f"{tuple(back.shape)}."
        )
    returned = {(source, target) for target, source in align(back)}
    return [link for link in align(forward) if link in returned]


def pharaoh(alignment: Iterable[Link]) -> str:
    """`0-0 1-2 2-1`: source and target positions, counted from 0."""
    return " ".join(f"{source}-{target}" for source, target in alignment)


def _check(weights: Tensor, name: str, shape: str) -> None:
    if weights.dim() != 2:
        raise ValueError(
            f"{name} must be {shape}, got {tuple(weights.shape)}: select one sentence and one head, or take a mean."
        )
