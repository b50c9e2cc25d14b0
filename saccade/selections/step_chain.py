"""Step-chain selection."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from saccade.distributions import Distribution
from saccade.distributions.chain import Chain
from saccade.scores import Score
from saccade.selections.base import Selection, check_finite, full_mask, selections
from saccade.structures import FORBIDDEN


@selections.register("step_chain")
class StepChain(Selection):
    r"""Picks one key per step, with scored transitions between consecutive keys: one fact leads to the next.

    .. math:: p(z_1, \dots, z_K) \propto \exp\Big(\sum_k s_{k z_k} + \sum_k f_k(x_{z_k}, x_{z_{k+1}})\Big)

    The queries are the K steps, in order, all at once; the weights of step k are p(z_k = j). A query with no attendable
    key is skipped. The sum of the contexts over the steps is the paper's context.

    Shapes:
        scores (*batch, queries, keys), mask of the same shape -> a `Chain` over all queries.

    Reference:
        Kim et al. (2017), arXiv:1702.00887, section 4.3: s_{kj} is x_j^k q^k, f_k(x_i, x_j) is x_i^k x_j^{k+1},
        that is, a bilinear score for each step.

    Args:
        following: f, a score that compares keys with keys: one for all steps, or one for each step but the last.
    """

    joins_queries = True

    def __init__(self, *, following: Score | Sequence[Score]) -> None:
        super().__init__()
        several = isinstance(following, Iterable) and not isinstance(following, Score)
        given: list[Any] = list(following) if several else [following]  # type: ignore[arg-type]
        for score in given:
            if not isinstance(score, Score):
                raise TypeError(f"following must be a Score, or one for each step but the last, got {following!r}.")
            if score.stateful or score.feature_wise or score.query_free:
                raise ValueError(f"following must compare two keys, which {type(score).__name__} does not.")
        self.shared = isinstance(following, Score)
        self.following = nn.ModuleList(given)

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Any:
        return keys, tuple(score.prepare(keys, mask=mask, start=start) for score in self._scores())

    def _scores(self) -> list[Score]:
        return [score for score in self.following if isinstance(score, Score)]

    def select(self, scores: Tensor, mask: Tensor, *, query: Tensor | None, prepared: Any, state: Any) -> Distribution:
        if prepared == ():
            raise ValueError(
                "StepChain compares the keys with each other: pass prepared=selection.prepare(keys), as Attention does."
            )
        keys, compared = prepared
        steps, size = scores.shape[-2:]
        if not self.shared and len(self.following) != max(steps - 1, 0):
            raise ValueError(f"{steps} steps need {steps - 1} scores in following, got {len(self.following)}.")
        tables = [score.compare(keys, own) for score, own in zip(self._scores(), compared, strict=True)]
        transitions = torch.stack(tables, dim=-3) if tables else scores.new_zeros(*scores.shape[:-2], 0, size, size)
        may = mask.any(-2)
        both = full_mask(transitions, (may.unsqueeze(-1) & may.unsqueeze(-2)).unsqueeze(-3))
        check_finite(transitions, both)
        transitions = torch.where(both, transitions, 0.0).to(scores.dtype)
        unary = torch.where(mask, scores, FORBIDDEN) if size else scores
        return Chain.of(unary, transitions, mask=mask.any(-1), training=self.training)
