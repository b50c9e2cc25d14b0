"""Scores that depend on positions."""

from typing import Any

import torch
from torch import Tensor

from saccade.scores.base import Prepared, Score


class PositionalScore(Score):
    """A score that depends on the positions of query and key.

    Keys are at positions 0, 1, 2, ..., and the last query is at the position of the last key. So a single query that
    reads a growing memory is at the newest position, and equal numbers of queries and keys have the same positions.
    Combined with a stateful score, queries come one at a time: then the state is the next query's position,
    (*batch, 1, 1).
    """

    pairwise: bool = False

    def begin(self, query: Tensor, prepared: Prepared, mask: Tensor | None = None) -> Tensor:
        first = prepared.shape[-2] - query.shape[-2]
        return torch.full((*query.shape[:-2], 1, 1), first, dtype=torch.long, device=query.device)

    def advance(self, state: Any, weights: Tensor, query: Tensor, prepared: Prepared) -> Any:
        return state + query.shape[-2]

    def query_positions(self, query: Tensor, prepared: Prepared, state: Any) -> Tensor:
        """(queries, 1), or (*batch, queries, 1) if there is a state."""
        queries, keys = query.shape[-2], prepared.shape[-2]
        step = torch.arange(queries, device=query.device).unsqueeze(-1)
        first: int | Tensor = keys - queries if state is None else state
        return step + first
