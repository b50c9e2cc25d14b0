"""How to compute attention weights from the kept tensors of a call."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

Tensors = dict[str, Tensor]
Shape = tuple[int, int, int, int]


class Change(Protocol):
    """Returns other weights, or the same object to change nothing."""

    def __call__(self, weights: Tensor, mask: Tensor, keys: Tensor | None = None, /) -> Tensor:
        """Changes the weights of a call.

        Args:
            weights: those of the model.
            mask: in the same shape, which keys may be attended.
            keys: (*batch, keys, dim), the keys or values, which tell the positions.
        """
        ...


class Captured(NamedTuple):
    """One call of attention: references to its tensors, and how to compute its weights from them."""

    recipe: Recipe
    tensors: Tensors


class Recipe:
    """Computes the weights of a call from its tensors, some queries at a time.

    Shapes:
        -> weights (batch, heads, queries, keys). Attention without heads counts as one head; all dimensions before
        the heads are flattened into the batch.
    """

    def shape(self, tensors: Tensors) -> Shape:
        """(batch, heads, queries, keys)."""
        raise NotImplementedError

    def sizes(self, tensors: Tensors) -> tuple[int, int] | None:
        """How many queries and keys there are; None if keys are not positions of a sequence."""
        return self.shape(tensors)[2:]

    def resolve(self, tensors: Tensors) -> Captured:
        """An equivalent call that is cheaper to compute, with projections done; called once for all queries."""
        return Captured(self, tensors)

    def compute(self, tensors: Tensors, rows: slice) -> Tensor:
        """The weights of the queries in `rows`."""
        raise NotImplementedError

    def choose(self, tensors: Tensors, heads: list[int]) -> Captured:
        """The same call with some heads only, without references to the others."""
        raise NotImplementedError


@dataclass(frozen=True)
class ScaledDot(Recipe):
    """Softmax of scaled inner products, as `F.scaled_dot_product_attention` defines it.

    Weights are those before dropout, computed in single precision or better. A query that may not attend any key
    gets zeros.

    Tensors:
        query (*batch, heads, queries, dim), key (*batch, key heads, keys, dim), mask broadcastable to
        (*batch, heads, queries, keys), bool (True = may be attended) or added to the scores.

    Args:
        scale: of the inner products; None for dim ** -0.5.
        causal: whether query i may attend the keys up to i, counted from the first of each.
    """

    scale: float | None = None
    causal: bool = False

    def shape(self, tensors: Tensors) -> Shape:
        query, key = tensors["query"], tensors["key"]
        return (*four(self.leading(tensors)), query.shape[-2], key.shape[-2])

    def sizes(self, tensors: Tensors) -> tuple[int, int] | None:
        return tensors["query"].shape[-2], tensors["key"].shape[-2]

    def leading(self, tensors: Tensors) -> tuple[int, ...]:
        """The dimensions of the weights before queries and keys."""
        query, key = tensors["query"], tensors["key"]
        batch = torch.broadcast_shapes(query.shape[:-3], key.shape[:-3])
        return (*batch, *query.shape[-3:-2])

    def allowed(self, tensors: Tensors) -> Tensor:
        """bool, in the shape of the weights: which keys may be attended."""
        query, mask = tensors["query"], tensors.get("mask")
        shape = (*self.leading(tensors), query.shape[-2], tensors["key"].shape[-2])
        allowed = torch.ones(shape, dtype=torch.bool, device=query.device)
        if self.causal:
            allowed = allowed.tril()
        if mask is not None:  # a mask that is added forbids a key by -inf or by the smallest number there is
            allowed = allowed & (mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2)
        return allowed.reshape(self.shape(tensors))

    def compute(self, tensors: Tensors, rows: slice) -> Tensor:
        query, key, mask = tensors["query"], tensors["key"], tensors.get("mask")
        leading = self.leading(tensors)
        first = rows.start or 0
        query = full(query[..., rows, :])
        key = grouped(key, query.shape[-3]) if query.dim() > 2 else key
        scale = query.shape[-1] ** -0.5 if self.scale is None else self.scale
        scores = torch.matmul(query, full(key).transpose(-2, -1)).mul_(scale)
        if self.causal:
            places = torch.arange(first, first + scores.shape[-2], device=scores.device)
            later = torch.arange(scores.shape[-1], device=scores.device) > places[:, None]
            scores.masked_fill_(later, -torch.inf)
        if mask is not None:
            part = mask[..., rows, :] if mask.dim() > 1 and mask.shape[-2] > 1 else mask
            scores = scores.masked_fill_(~part, -torch.inf) if part.dtype == torch.bool else scores + part
        weights = torch.softmax(scores, -1) if mask is None else softmax_or_zeros(scores)
        return weights.expand(*leading, *weights.shape[-2:]).reshape(*four(leading), *weights.shape[-2:])

    def choose(self, tensors: Tensors, heads: list[int]) -> Captured:
        query, key, mask = tensors["query"], tensors["key"], tensors.get("mask")
        if query.dim() < 4:
            return Captured(self, tensors)  # there is only one head
        group = query.shape[-3] // key.shape[-3]
        chosen: Tensors = {"query": _pick(query, heads), "key": _pick(key, [head // group for head in heads])}
        if mask is not None:
            chosen["mask"] = _pick(mask, heads) if mask.dim() > 2 and mask.shape[-3] > 1 else mask
        return Captured(self, chosen)


scaled_dot = lru_cache(maxsize=256)(ScaledDot)
"""Cached recipes: most calls have the same one, and looking it up is faster than making it."""


@dataclass(frozen=True)
class Given(Recipe):
    """The weights that the model computed itself.

    Tensors:
        weights (*batch, heads, queries, keys).
    """

    def shape(self, tensors: Tensors) -> Shape:
        weights = tensors["weights"]
        return (*four(weights.shape[:-2]), weights.shape[-2], weights.shape[-1])

    def compute(self, tensors: Tensors, rows: slice) -> Tensor:
        weights = full(tensors["weights"][..., rows, :])
        return weights.reshape(*four(weights.shape[:-2]), *weights.shape[-2:])

    def choose(self, tensors: Tensors, heads: list[int]) -> Captured:
        weights = tensors["weights"]
        return Captured(self, tensors if weights.dim() < 4 else {"weights": _pick(weights, heads)})


@dataclass(frozen=True)
class Top(Recipe):
    """The largest weights of each query; the others read as zero.

    Tensors:
        values, places (batch, heads, queries, k).
    """

    keys: int

    def shape(self, tensors: Tensors) -> Shape:
        batch, heads, queries, _ = tensors["values"].shape
        return batch, heads, queries, self.keys

    def compute(self, tensors: Tensors, rows: slice) -> Tensor:
        values, places = full(tensors["values"][:, :, rows]), tensors["places"][:, :, rows]
        return values.new_zeros(*values.shape[:-1], self.keys).scatter_(-1, places.long(), values)

    def choose(self, tensors: Tensors, heads: list[int]) -> Captured:
        return Captured(replace(self), {name: _pick(tensor, heads) for name, tensor in tensors.items()})


def four(leading: tuple[int, ...]) -> tuple[int, int]:
    """(batch, heads) of the dimensions before queries and keys: none, a batch, a batch and heads, or more."""
    heads = leading[-1] if len(leading) > 1 else 1
    batch = 1
    for size in leading[:-1] if len(leading) > 1 else leading:
        batch *= size
    return batch, heads


def grouped(key: Tensor, heads: int) -> Tensor:
    """Keys or values (*batch, heads, keys, dim) with one head for each head of the queries, which may share them."""
    given = key.shape[-3]
    return key if given in (1, heads) else key.repeat_interleave(heads // given, dim=-3)


def full(tensor: Tensor) -> Tensor:
    """In single precision or better."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def softmax_or_zeros(scores: Tensor) -> Tensor:
    """Softmax over the last axis; zeros where all scores are minus infinity. The scores are overwritten."""
    if not scores.shape[-1]:
        return scores
    empty = scores.amax(-1, keepdim=True) == -torch.inf
    weights = torch.softmax(scores, -1)
    # The gradient of softmax needs its result.
    return weights.masked_fill(empty, 0.0) if weights.requires_grad else weights.masked_fill_(empty, 0.0)


def _pick(tensor: Tensor, heads: list[int]) -> Tensor:
    return tensor.index_select(-3, torch.tensor(heads, device=tensor.device))
