"""Addressing of the neural Turing machine."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.checks import check_count
from saccade.distributions import Distribution
from saccade.selections.base import Selection, selections
from saccade.selections.conditioned import query_of
from saccade.selections.previous import last_distribution, previous_weights, remembering, working_dtype
from saccade.selections.ranks import Ranks
from saccade.selections.softmax import softmax


@selections.register("ntm_addressing")
class NTMAddressing(Selection):
    r"""Content weights, mixed with the previous ones, shifted around a circle, and sharpened.

    .. math::
        w^c = \operatorname{softmax}(s), \qquad w^g = g\, w^c + (1 - g)\, w_{t-1}, \qquad
        \tilde w_i = \sum_j w^g_j\, \kappa_{(i - j) \bmod S}, \qquad
        p_i = \frac{\tilde w_i^\gamma}{\sum_l \tilde w_l^\gamma}

    The query q_t gives the gate g = sigmoid(W_g q_t), the shifts kappa = softmax(W_s q_t) over -R..R with R =
    `shift_range`, and the exponent gamma = 1 + softplus(W_gamma q_t). The circle has the row's S attendable keys.
    Before the first step all weight is on the first key. The key strength beta belongs to the score.

    Shapes:
        scores (*batch, queries, keys), mask of the same shape, query (*batch, queries, query_dim)
        -> a `Categorical` over keys. The state is the previous weights (*batch, 1, keys).

    Reference:
        Graves et al. (2014), arXiv:1410.5401, section 3.3; kappa is s_t.
    """

    stateful = True

    def __init__(self, *, query_dim: int, shift_range: int = 1) -> None:
        super().__init__()
        check_count("shift_range", shift_range, least=0)
        self.query_dim = query_dim
        self.shift_range = shift_range
        self.gate_proj = nn.Linear(query_dim, 1)
        self.shift_proj = nn.Linear(query_dim, 2 * shift_range + 1)
        self.sharpen_proj = nn.Linear(query_dim, 1)

    def select(self, scores: Tensor, mask: Tensor, *, query: Tensor | None, prepared: Any, state: Any) -> Distribution:
        query = query_of(query, scores, self.query_dim, self)
        if scores.numel() == 0:
            return remembering(torch.zeros_like(scores), scores, training=self.training)
        dtype = working_dtype(scores)
        content = softmax(scores.to(dtype), mask=mask)
        gate = torch.sigmoid(self.gate_proj(query)).to(dtype)
        shift = torch.softmax(self.shift_proj(query).to(dtype), dim=-1)
        sharpness = 1.0 + F.softplus(self.sharpen_proj(query)).to(dtype)
        weights = previous_weights(state, scores, mask)
        rows = []
        steps = zip(*(tensor.unbind(-2) for tensor in (content, gate, shift, sharpness)), strict=True)
        for (found, g, kappa, gamma), ranks in zip(steps, Ranks.of(mask).rows(), strict=True):
            shifted = self._rotate(g * found + (1.0 - g) * weights, kappa, ranks)
            weights = softmax(gamma * shifted.clamp(min=torch.finfo(dtype).tiny).log(), mask=ranks.mask)
            rows.append(weights)
        return remembering(torch.stack(rows, dim=-2), scores, training=self.training)

    def _rotate(self, weights: Tensor, shift: Tensor, ranks: Ranks) -> Tensor:
        """The circular convolution over attendable keys; entries at masked keys are meaningless."""
        packed = ranks.pack(weights)
        total = torch.zeros_like(weights)
        for m in range(2 * self.shift_range + 1):
            source = (ranks.rank - (m - self.shift_range)) % ranks.size.clamp(min=1)
            total = total + shift[..., m : m + 1] * packed.gather(-1, source)
        return total

    def advance(self, state: Any, distribution: Distribution) -> Any:
        return last_distribution(distribution, state)
