"""Alignments: which source piece each target piece came from."""

from collections.abc import Iterable

from torch import Tensor


def align(weights: Tensor) -> list[tuple[int, int]]:
    """(source, target) for each target step: the place that it looked at most. A step that looked nowhere has none.

    Shapes:
        weights (target, source).
    """
    if weights.numel() == 0:
        return []
    most, place = weights.max(dim=-1)
    return [(j, i) for i, (j, weight) in enumerate(zip(place.tolist(), most.tolist(), strict=True)) if weight > 0]


def pharaoh(alignment: Iterable[tuple[int, int]]) -> str:
    """`0-0 1-2 2-1`: source and target places, counted from 0."""
    return " ".join(f"{source}-{target}" for source, target in alignment)
