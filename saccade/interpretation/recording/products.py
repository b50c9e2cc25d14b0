"""Which axes of a product's factor are heads, queries and keys, and what its other factor is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from saccade.interpretation.recording.effects import PERMUTATIONS

LEFT = {"baddbmm": 1, "addmm": 1, "addbmm": 1}
"""Where functions have their left factor, if it is not their first argument."""


def arranged(name: str, args: Sequence[Any], factor: Tensor, weights: Tensor, *, known: bool) -> Tensor:
    """The weights (*batch, heads, queries, keys), as the product of a factor with values shows them.

    Args:
        name: of the function that computes the product.
        args: its arguments.
        factor: that of the arguments which the weights have become.
        weights: as the softmax left them.
        known: whether keys are the last axis of the weights, as they are if the softmax is over this axis.
    """
    axes = _axes(args, factor) if name == "einsum" else None
    if axes is not None and (weights.shape == factor.shape or not known):
        return (weights if weights.shape == factor.shape else factor.detach()).permute(axes)
    if known:
        return weights
    first = LEFT.get(name, 0)
    return factor.detach() if len(args) <= first or args[first] is factor else factor.detach().transpose(-2, -1)


def in_usual_order(name: str, args: Sequence[Any], factor: Tensor, *, known: bool) -> bool:
    """Whether the axes of a factor are (*batch, heads, queries, keys) as they are; see `arranged`."""
    axes = _axes(args, factor) if name == "einsum" else None
    if axes is not None:
        return axes == list(range(factor.dim()))
    first = LEFT.get(name, 0)
    return known or len(args) <= first or args[first] is factor


def permuted(name: str, args: Sequence[Any], kwargs: dict[str, Any], factor: Tensor, weights: Tensor) -> Tensor | None:
    """The weights with other axes in front of the keys; None if a function does something else."""
    if name not in PERMUTATIONS or not args or args[0] is not factor or weights.shape != factor.shape:
        return None
    permute = getattr(Tensor, name)
    axes = permute(torch.empty(tuple(range(2, 2 + weights.dim())), device="meta"), *args[1:], **kwargs).shape
    return permute(weights, *args[1:], **kwargs) if axes[-1] == 1 + weights.dim() else None


def values_of(weights: Tensor, others: list[Tensor]) -> Tensor | None:
    """What weights are multiplied by, with keys as its second last axis."""
    return next((each.detach() for each in others if each.dim() > 2 and each.shape[-2] == weights.shape[-1]), None)


def mixes_heads(weights: Tensor, factor: Tensor, others: list[Tensor], result: Tensor) -> bool:
    """Whether a product is that of heads with a small matrix (talking heads), and not that of weights with values."""
    if weights.dim() != 4 or factor.dim() != 4 or result.dim() != 4 or not others:
        return False
    batch, heads, queries, keys = weights.shape
    small = others[0].dim() == 2 or tuple(others[0].shape[2:]) == (1, 1)  # a matrix, or a 1 x 1 convolution
    if not small or heads not in others[0].shape[:2]:
        return False
    before, after = tuple(factor.shape), tuple(result.shape)
    first = before == (batch, heads, queries, keys) and (after[0], *after[2:]) == (batch, queries, keys)
    last = before == (batch, queries, keys, heads) and after[:3] == before[:3]
    return first or last


def _axes(args: Sequence[Any], factor: Tensor) -> list[int] | None:
    """The axes of a factor of an Einstein sum: those that it shares with the values, queries, keys."""
    operands = args[1] if len(args) == 2 and isinstance(args[1], list | tuple) else args[1:]
    if not isinstance(args[0], str) or "->" not in args[0] or "." in args[0] or len(operands) != 2:
        return None
    inputs, output = args[0].replace(" ", "").split("->")
    number = 0 if operands[0] is factor else 1
    own, others = inputs.split(",")[number], inputs.split(",")[1 - number]
    keys = [axis for axis, label in enumerate(own) if label in others and label not in output]
    if len(keys) != 1 or len(set(own)) != len(own):
        return None
    batch = [axis for axis, label in enumerate(own) if label in others and axis not in keys]
    return [*batch, *(axis for axis in range(len(own)) if axis not in (*batch, *keys)), *keys]
