"""Windowed, sharpened softmax."""

from typing import Any

import torch
from torch import Tensor

from saccade.checks import check_count
from saccade.distributions import Distribution
from saccade.selections.base import Selection, selections
from saccade.selections.previous import last_distribution, previous_weights, remembering, working_dtype
from saccade.selections.ranks import Ranks
from saccade.selections.softmax import softmax


@selections.register("windowed")
class Windowed(Selection):
    r"""Softmax over a window around the median of the previous weights, with an inverse temperature.

    .. math:: p_{ij} = \frac{\exp(\beta s_{ij})}{\sum_{|l - m_i| \le w} \exp(\beta s_{il})}
        \quad \text{for } |j - m_i| \le w, \qquad m_i = \operatorname{median}(p_{i-1})

    w is `half_width`, beta `inverse_temperature`: above one it sharpens. Before the first step all weight is on the
    first key, so the first window covers w keys to its right. Positions count attendable keys only.

    Shapes:
        scores (*batch, queries, keys), mask of the same shape -> a `Categorical` over keys.
        The state is the previous weights (*batch, 1, keys).

    Reference:
        Chorowski et al. (2015), arXiv:1506.07503, section 2.3.
    """

    stateful = True

    def __init__(self, *, half_width: int = 10, inverse_temperature: float = 1.0) -> None:
        super().__init__()
        check_count("half_width", half_width, least=0)
        if not inverse_temperature > 0:
            raise ValueError(f"inverse_temperature must be above 0, got {inverse_temperature}.")
        self.half_width = half_width
        self.inverse_temperature = inverse_temperature

    def select(self, scores: Tensor, mask: Tensor, *, query: Tensor | None, prepared: Any, state: Any) -> Distribution:
        logits = scores.masked_fill(~mask, 0.0) * self.inverse_temperature
        if logits.numel() == 0:
            return remembering(torch.zeros_like(logits), scores, logits=logits, training=self.training)
        previous = previous_weights(state, scores, mask)
        rows = []
        for row, ranks in zip(logits.to(working_dtype(scores)).unbind(-2), Ranks.of(mask).rows(), strict=True):
            previous = softmax(row, mask=self._window(ranks, previous.detach()))
            rows.append(previous)
        return remembering(torch.stack(rows, dim=-2), scores, logits=logits, training=self.training)

    def _window(self, ranks: Ranks, previous: Tensor) -> Tensor:
        """bool (*batch, keys): the attendable keys around the median of `previous`."""
        mass = previous.cumsum(-1)
        median = (mass < 0.5 * mass[..., -1:]).sum(-1, keepdim=True)
        centre = ranks.rank.gather(-1, median)
        # If this query may not attend the median key, use the next attendable one, or else the last.
        centre = torch.minimum(centre, ranks.size - 1)
        return ranks.mask & ((ranks.rank - centre).abs() <= self.half_width)

    def advance(self, state: Any, distribution: Distribution) -> Any:
        return last_distribution(distribution, state)
