"""Monotonic chunkwise attention."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional as F

from saccade.checks import check_count
from saccade.distributions import Chunked, Distribution
from saccade.scores import Score
from saccade.selections.base import check_finite, selections
from saccade.selections.monotonic import Monotonic
from saccade.selections.previous import last_weights, working_dtype
from saccade.selections.ranks import Ranks


@selections.register("mocha")
class MoChA(Monotonic):
    r"""Soft attention over the chunk of keys that ends where monotonic attention stops.

    .. math:: \beta_{ij} = \sum_{k=j}^{j+w-1} \alpha_{ik}\, \frac{\exp(u_{ij})}{\sum_{l=k-w+1}^{k} \exp(u_{il})}

    alpha is as in `Monotonic`, and w is the `width`, truncated at the first key; chunks count attendable keys only. The
    chunk energies u come from `chunk_score`, a separate score of the same query and keys; by default they are the
    stopping scores. Training uses expectations for both; evaluation stops hard and reads the chunk softly.

    Shapes:
        scores (*batch, queries, keys), mask of the same shape, query (*batch, queries, query_dim) if there is a
        `chunk_score` -> a defective `Chunked` categorical over keys. The state is the previous alpha (*batch, 1, keys).

    Reference:
        Chiu and Raffel (2018), arXiv:1712.05382, section 2.3.

    Args:
        width: the number of keys in a chunk.
        chunk_score: the score of keys within a chunk.
        noise, offset, learn_offset, threshold, hard_at_eval: as in `Monotonic`.
    """

    def __init__(
        self,
        *,
        width: int = 2,
        chunk_score: Score | None = None,
        noise: float = 1.0,
        offset: float = 0.0,
        learn_offset: bool = False,
        threshold: float = 0.5,
        hard_at_eval: bool = True,
    ) -> None:
        super().__init__(
            noise=noise, offset=offset, learn_offset=learn_offset, threshold=threshold, hard_at_eval=hard_at_eval
        )
        check_count("width", width)
        if chunk_score is not None and not isinstance(chunk_score, Score):
            raise TypeError(f"chunk_score must be a Score or None, got {chunk_score!r}.")
        if chunk_score is not None and (chunk_score.stateful or chunk_score.feature_wise):
            raise ValueError(
                f"chunk_score must be stateless and give one score per key, but {type(chunk_score).__name__} is not "
                "such a score: choose another."
            )
        self.width = width
        self.chunk_score = chunk_score

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Any:
        if self.chunk_score is None:
            return ()
        if start and not self.chunk_score.appendable:
            raise ValueError(f"chunk_score {type(self.chunk_score).__name__} mixes keys: prepare all keys at once.")
        return (self.chunk_score.prepare(keys, mask=mask, start=start),)

    def select(self, scores: Tensor, mask: Tensor, *, query: Tensor | None, prepared: Any, state: Any) -> Distribution:
        energies = self._chunk_energies(scores, mask, query, prepared)
        stops = self.stops(scores, mask, state)
        probs = chunkwise(stops, energies, mask, self.width).to(scores.dtype)
        return Chunked(probs, defective=True, training=self.training, ends=stops)

    def _chunk_energies(self, scores: Tensor, mask: Tensor, query: Tensor | None, prepared: Any) -> Tensor:
        if self.chunk_score is None:
            return scores
        if query is None or prepared == ():
            raise ValueError(
                "MoChA with a chunk_score compares the query with the keys itself: pass query=... and "
                "prepared=selection.prepare(keys), as Attention does."
            )
        energies = self.chunk_score.compare(query, prepared[0])
        energies = (energies.unsqueeze(-3) if energies.dim() < scores.dim() else energies).expand(scores.shape)
        check_finite(energies, mask)
        return energies

    def advance(self, state: Any, distribution: Distribution) -> Any:
        return last_weights(cast(Chunked, distribution).ends, state)


def chunkwise(ends: Tensor, energies: Tensor, mask: Tensor, width: int) -> Tensor:
    """Distributes the mass of each chunk's end over its `width` attendable keys by the softmax of their energies.

    Shapes:
        ends, energies and mask (*batch, queries, keys) -> (*batch, queries, keys), in at least single precision.
    """
    dtype = working_dtype(energies)
    if energies.numel() == 0:
        return torch.zeros_like(energies, dtype=dtype)
    ranks = Ranks.of(mask)
    lowest = torch.finfo(dtype).min
    packed = ranks.pack(energies.masked_fill(~mask, 0.0).to(dtype), fill=lowest)
    chunks = torch.softmax(F.pad(packed, (width - 1, 0), value=lowest).unfold(-1, width, 1), dim=-1)
    parts = ranks.pack(ends.to(dtype)).unsqueeze(-1) * chunks  # (..., end, position within the chunk)
    total = torch.zeros_like(packed)
    for place in range(width):
        later = width - 1 - place  # distance from this position to the end of the chunk
        total = total + F.pad(parts[..., place], (0, later))[..., later:]
    return ranks.unpack(total)
