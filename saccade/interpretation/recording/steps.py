"""The steps of a decoder, whose weights take less memory than their keys if each step has new keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.interpretation.recording.blocks import no_autocast
from saccade.interpretation.recording.kept import Kept
from saccade.interpretation.recording.recipes import (
    Captured,
    Given,
    Recipe,
    ScaledDot,
    Shape,
    Tensors,
    full,
    grouped,
    softmax_or_zeros,
)
from saccade.kernels.private_torch import version


@dataclass(frozen=True)
class Part(Recipe):
    """The weights of one of several calls.

    Tensors:
        weights (batch, heads, queries of all calls, keys).

    Args:
        first: the number of the first query.
        queries, keys: how many there are.
    """

    first: int
    queries: int
    keys: int

    def _own(self, tensors: Tensors) -> Tensors:
        return {"weights": tensors["weights"][:, :, self.first : self.first + self.queries, : self.keys]}

    def shape(self, tensors: Tensors) -> Shape:
        return (*tensors["weights"].shape[:2], self.queries, self.keys)

    def resolve(self, tensors: Tensors) -> Captured:
        return Captured(Given(), self._own(tensors))

    def compute(self, tensors: Tensors, rows: slice) -> Tensor:
        return Given().compute(self._own(tensors), rows)

    def choose(self, tensors: Tensors, heads: list[int]) -> Captured:
        return Given().choose(self._own(tensors), heads)


def is_step(recipe: Recipe, tensors: Tensors) -> bool:
    """Whether a call is one whose weights take less memory than its keys."""
    if type(recipe) is not ScaledDot or recipe.causal:
        return False
    query, key = tensors["query"].shape, tensors["key"].shape
    return len(query) == 4 and query[2] != key[2] and query[1] * query[2] < key[1] * key[3] and query[0] == key[0]


def settle(calls: Sequence[Kept]) -> int:
    """Keeps the weights of a module's calls instead of their keys, if the weights are smaller.

    The weights of many steps are computed together, since the last keys of a cache that grows contain those of the
    steps before.

    Returns:
        How many bytes the weights take.
    """
    own = [call for call in calls if is_step(call.recipe, call.tensors)]
    taken = 0
    group: list[Kept] = []
    for call in reversed([each for each in own if not each.overwritten()]):  # reading the others is an error
        if group and not _contains(group[0], call):
            taken += _settle_group(group[::-1])
            group = []
        group.append(call)
    return taken + (_settle_group(group[::-1]) if group else 0)


def _settle_group(calls: Sequence[Kept]) -> int:
    """Replaces the tensors of calls by their weights; the keys of the last contain those of the others."""
    with torch.no_grad(), no_autocast(calls[0].tensors):
        weights = _weights(calls)
    shared, versions, row = {"weights": weights}, {"weights": version(weights)}, 0
    for call in calls:
        queries, keys = call.tensors["query"].shape[2], call.tensors["key"].shape[2]
        call.replace(Part(row, queries, keys), shared, versions)
        row += queries
    return weights.nbytes


def _contains(last: Kept, call: Kept) -> bool:
    """Whether the keys of a step begin with those of an earlier one."""
    now, then = last.tensors["key"], call.tensors["key"]
    same = last.recipe == call.recipe and now.dtype == then.dtype and now.shape[:2] == then.shape[:2]
    return same and now.shape[2] >= then.shape[2] and torch.equal(now[:, :, : then.shape[2]], then)


def _weights(calls: Sequence[Kept]) -> Tensor:
    """(batch, heads, queries of all calls, keys of the last)."""
    recipe, tensors = calls[-1].recipe, calls[-1].tensors
    assert isinstance(recipe, ScaledDot)
    if len(calls) == 1:
        return recipe.compute(tensors, slice(0, tensors["query"].shape[2]))
    query = torch.cat([full(call.tensors["query"]) for call in calls], dim=2)
    key = full(grouped(tensors["key"], query.shape[1]))
    scale = query.shape[-1] ** -0.5 if recipe.scale is None else recipe.scale
    scores = torch.matmul(query, key.transpose(-2, -1)).mul_(scale)
    counts = [call.tensors["query"].shape[2] for call in calls]
    keys = torch.tensor([call.tensors["key"].shape[2] for call in calls]).repeat_interleave(torch.tensor(counts))
    later = torch.arange(key.shape[2]) >= keys[:, None]
    scores.masked_fill_(later.to(scores.device), -torch.inf)
    row, masked = 0, False
    for call, count in zip(calls, counts, strict=True):
        mask = call.tensors.get("mask")
        if mask is not None:
            here, masked = scores[:, :, row : row + count, : call.tensors["key"].shape[2]], True
            if mask.dtype == torch.bool:
                here.masked_fill_(~mask, -torch.inf)
            else:
                here += mask
        row += count
    return softmax_or_zeros(scores) if masked else torch.softmax(scores, -1)
