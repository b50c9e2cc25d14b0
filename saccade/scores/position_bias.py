"""Relative position biases."""

from typing import Any

import torch
from torch import Tensor

from saccade.checks import check_count
from saccade.scores.base import Prepared
from saccade.scores.positional import PositionalScore


class PositionBias(PositionalScore):
    """A score that depends on the distance between query and key alone, to be added to a content score.

    Subclasses implement `at`. With several heads, the heads are the last batch dimension, as in `MultiHead`.
    """

    def __init__(self, *, num_heads: int = 1) -> None:
        super().__init__()
        check_count("num_heads", num_heads)
        self.num_heads = num_heads

    def at(self, distance: Tensor) -> Tensor:
        """The bias at distances key - query, (*batch, queries, keys) -> the same, with heads before the queries."""
        raise NotImplementedError

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Prepared:
        return keys[..., :0]  # only their number matters

    def bias(self, query: Tensor, prepared: Prepared, state: Any = None) -> Tensor:
        """The scores, with size 1 in the batch dimensions that they do not depend on."""
        if self.num_heads > 1 and (query.dim() < 3 or query.shape[-3] != self.num_heads):
            raise ValueError(
                f"{type(self).__name__} was built with num_heads={self.num_heads} and needs queries (*batch, "
                f"{self.num_heads}, queries, dim), got {tuple(query.shape)}: use the same num_heads in MultiHead."
            )
        key_positions = torch.arange(prepared.shape[-2], device=query.device)
        bias = self.at(key_positions - self.query_positions(query, prepared, state)).to(query.dtype)
        return bias.view(*(1,) * (query.dim() - bias.dim()), *bias.shape)

    def compare(self, query: Tensor, prepared: Prepared, state: Any = None) -> Tensor:
        return self.bias(query, prepared, state).expand(*query.shape[:-1], prepared.shape[-2])

    def look_up(self, table: Tensor, index: Tensor) -> Tensor:
        """Looks up a table (heads, entries); `index` is shared by the heads, or has a heads axis before the queries."""
        if self.num_heads == 1:
            return table[0, index]
        heads = torch.arange(self.num_heads, device=index.device)[:, None, None]
        return table[heads, index]
