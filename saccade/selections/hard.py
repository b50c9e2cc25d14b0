"""Hard attention, trained by a score-function estimator."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from saccade.aggregations import Aggregation, Sample
from saccade.distributions import Categorical, Distribution, Drawn
from saccade.selections.base import Selection, selections
from saccade.selections.softmax import softmax


@selections.register("hard")
class Hard(Selection):
    r"""Samples one position from the softmax.

    .. math:: p_j = \frac{\exp(s_j / \tau)}{\sum_l \exp(s_l / \tau)}, \qquad z \sim \operatorname{Cat}(p)

    In training the sample is replaced by its expectation p with probability `expectation_rate`, decided once for all
    queries of a batch row, also of a decoder that passes the state on from step to step: this lowers the variance of
    the estimator and lets gradients through. Evaluation uses the most probable position, or the expectation with
    `evaluate_with="expectation"`. Samples carry no gradient: train them with `saccade.losses.reinforce_loss`.

    Shapes:
        scores (*batch, queries, keys), mask of the same shape -> a `Drawn` categorical over keys.

    Reference:
        Xu et al. (2015), arXiv:1502.03044, section 4.1.
    """

    stochastic = True
    reinforced = True

    def __init__(
        self,
        *,
        temperature: float = 1.0,
        expectation_rate: float = 0.5,
        evaluate_with: Literal["mode", "expectation"] = "mode",
    ) -> None:
        super().__init__()
        if not temperature > 0:
            raise ValueError(f"temperature must be above 0, got {temperature}.")
        if not 0.0 <= expectation_rate <= 1.0:
            raise ValueError(f"expectation_rate must be in [0, 1], got {expectation_rate}.")
        if evaluate_with not in ("mode", "expectation"):
            raise ValueError(f"evaluate_with must be 'mode' or 'expectation', got {evaluate_with!r}.")
        self.temperature = temperature
        self.expectation_rate = expectation_rate
        self.evaluate_with = evaluate_with

    def select(self, scores: Tensor, mask: Tensor, *, query: Tensor | None, prepared: Any, state: Any) -> Distribution:
        logits = scores.masked_fill(~mask, 0.0) / self.temperature
        plain = Categorical(softmax(logits, mask=mask), logits=logits, training=self.training)
        probs, expected = plain.probs, None
        if self.training:
            once = torch.rand(*probs.shape[:-2], 1, 1, device=probs.device) < self.expectation_rate
            expected = (once if state is None else state).expand(*probs.shape[:-1], 1)
        return Drawn(probs, logits=logits, training=self.training, drawn=self._draw(plain, expected), expected=expected)

    def _draw(self, distribution: Categorical, expected: Tensor | None) -> Tensor:
        probs = distribution.probs
        if expected is None:
            return probs if self.evaluate_with == "expectation" else distribution.mode
        return torch.where(expected, probs, distribution.sample())

    def advance(self, state: Any, distribution: Distribution) -> Any:
        expected = distribution.expected if isinstance(distribution, Drawn) else None
        return state if expected is None or not expected.shape[-2] else expected[..., -1:, :]

    def default_aggregation(self) -> Aggregation | None:
        return Sample()
