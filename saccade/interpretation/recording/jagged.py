"""Nested tensors whose rows differ in length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from saccade.interpretation.recording.recipes import Captured, Recipe, ScaledDot, Shape, Tensors


@dataclass(frozen=True)
class Jagged(Recipe):
    """`F.scaled_dot_product_attention` of nested tensors; padding has zeros.

    Tensors:
        query, key: nested (batch, heads, length of each row, dim).
    """

    scale: float | None = None
    causal: bool = False

    def shape(self, tensors: Tensors) -> Shape:
        query, key = tensors["query"].unbind(), tensors["key"].unbind()
        return len(query), query[0].shape[0], int(_lengths(query).max()), int(_lengths(key).max())

    def sizes(self, tensors: Tensors) -> None:
        return None

    def resolve(self, tensors: Tensors) -> Captured:
        query, key = tensors["query"].unbind(), tensors["key"].unbind()
        padded = {"query": _pad(query), "key": _pad(key)}
        real = [torch.arange(int(_lengths(rows).max())) < _lengths(rows)[:, None] for rows in (query, key)]
        padded["mask"] = (real[0][:, None, :, None] & real[1][:, None, None, :]).to(padded["query"].device)
        return Captured(ScaledDot(self.scale, self.causal), padded)

    def compute(self, tensors: Tensors, rows: slice) -> Tensor:
        recipe, resolved = self.resolve(tensors)
        return recipe.compute(resolved, rows)

    def choose(self, tensors: Tensors, heads: list[int]) -> Captured:
        recipe, resolved = self.resolve(tensors)
        return recipe.choose(resolved, heads)


def _lengths(rows: Sequence[Tensor]) -> Tensor:
    return torch.tensor([row.shape[1] for row in rows])


def _pad(rows: Sequence[Tensor]) -> Tensor:
    return pad_sequence([row.transpose(0, 1) for row in rows], batch_first=True).transpose(1, 2)
