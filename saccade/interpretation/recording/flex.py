"""FlexAttention."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from saccade.interpretation.recording.freezing import CannotFreezeError, Freezer
from saccade.interpretation.recording.recipes import (
    Captured,
    Change,
    Given,
    Recipe,
    Shape,
    Tensors,
    full,
    softmax_or_zeros,
)

Modifier = Callable[..., Tensor]


@dataclass(frozen=True)
class Flex(Recipe):
    """Softmax of inner products that one function of (score, batch, head, query, key) modifies and another masks.

    The functions are called when the weights are read; they are copies, whose variables do not change.

    Tensors:
        query (batch, heads, queries, dim), key (batch, key heads, keys, dim), and those that the functions refer to.
    """

    scale: float
    score_mod: Modifier
    mask_mod: Modifier
    heads: tuple[int, ...] | None = None

    def shape(self, tensors: Tensors) -> Shape:
        query, key = tensors["query"], tensors["key"]
        return query.shape[0], query.shape[1], query.shape[2], key.shape[2]

    def compute(self, tensors: Tensors, rows: slice) -> Tensor:
        query, key = tensors["query"][:, :, rows], tensors["key"]
        key = key.repeat_interleave(query.shape[1] // key.shape[1], dim=1)
        scores = full(query) @ full(key).transpose(-2, -1) * self.scale
        batch, heads, queries, keys = scores.shape
        first = rows.start or 0
        numbers = range(heads) if self.heads is None else self.heads
        indices = (
            torch.arange(batch, device=scores.device),
            torch.tensor(list(numbers), device=scores.device),
            torch.arange(first, first + queries, device=scores.device),
            torch.arange(keys, device=scores.device),
        )
        scores = over_indices(self.score_mod, scored=True)(scores, *indices)
        allowed = over_indices(self.mask_mod, scored=False)(*indices)
        return softmax_or_zeros(scores.masked_fill(~allowed, -torch.inf))

    def choose(self, tensors: Tensors, heads: list[int]) -> Captured:
        query, key = tensors["query"], tensors["key"]
        group = query.shape[1] // key.shape[1]
        numbers = heads if self.heads is None else [self.heads[head] for head in heads]
        chosen = {**tensors, "query": query[:, heads], "key": key[:, [head // group for head in heads]]}
        return Captured(Flex(self.scale, self.score_mod, self.mask_mod, tuple(numbers)), chosen)


def flex_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Modifier,
    block_mask: tuple[Any, ...],
    scale: float,
    *others: Any,
    **options: Any,
) -> Captured:
    """A call of the operator behind `flex_attention`; the last part of its block mask is the mask function.

    If the functions use something that cannot be copied, the weights are computed at once.
    """
    tensors = {"query": query, "key": key}
    freezer = Freezer()
    try:
        recipe = Flex(scale, freezer.freeze(score_mod), freezer.freeze(block_mask[-1]))
    except CannotFreezeError:
        detached = {part: tensor.detach() for part, tensor in tensors.items()}
        weights = Flex(scale, score_mod, block_mask[-1]).compute(detached, slice(0, query.shape[2]))
        return Captured(Given(), {"weights": weights.detach()})
    return Captured(recipe, {**tensors, **freezer.tensors})


def flex_changed(
    original: Callable[..., tuple[Any, ...]], change: Change, query: Tensor, key: Tensor, value: Tensor, *others: Any
) -> tuple[Any, Tensor, Tensor] | None:
    """The operator with changed weights; its other results, such as the log-sum-exp, stay those of the scores."""
    score_mod, block_mask, scale = others[:3]
    recipe = Flex(scale, score_mod, block_mask[-1])
    own = recipe.compute({"query": query, "key": key}, slice(0, query.shape[2]))
    weights = change(own, own > 0, key.detach())
    if weights is own:
        return None
    _, *rest = original(query, key, value, *others)
    value = value.repeat_interleave(query.shape[1] // value.shape[1], dim=1)
    return (weights.to(value.dtype) @ value, *rest), weights, key


def over_indices(function: Modifier, *, scored: bool) -> Modifier:
    """A function of single indices as a function of vectors of batch, head, query and key indices."""
    front = (0,) if scored else ()
    for axis in (3, 2, 1, 0):
        mapped = tuple(0 if index == axis else None for index in range(4))
        function = torch.vmap(function, in_dims=(*front, *mapped))
    return function
