"""Energy of monotonic attention."""

from typing import Any

import torch
from torch import Tensor, nn

from saccade.kernels.additive import additive_scores
from saccade.scores.base import Prepared, Score, check_features, scores


@scores.register("monotonic_energy")
class MonotonicEnergyScore(Score):
    r"""An additive score with a learned scale and offset, so that a sigmoid over it does not saturate.

    .. math:: s_{ij} = g \frac{v^\top}{|v|} \tanh(W q_i + V k_j + b) + r

    g starts at 1 / sqrt(hidden_dim) and r at `offset`, which is negative so that attention moves forward at first.

    Shapes:
        query (*batch, queries, query_dim), keys (*batch, keys, key_dim) -> scores (*batch, queries, keys).

    Reference:
        Raffel et al. (2017), arXiv:1704.00784, section 2.4: q_i is s_{i-1}, k_j is h_j; r from -1 to -4.
    """

    def __init__(self, *, query_dim: int, key_dim: int, hidden_dim: int, offset: float = -1.0) -> None:
        super().__init__()
        self.query_dim = query_dim
        self.key_dim = key_dim
        self.query_proj = nn.Linear(query_dim, hidden_dim, bias=False)
        self.key_proj = nn.Linear(key_dim, hidden_dim)
        self.hidden_proj = nn.Linear(hidden_dim, 1, bias=False)
        self.gain = nn.Parameter(torch.tensor(hidden_dim**-0.5))
        self.offset = nn.Parameter(torch.tensor(float(offset)))

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Prepared:
        check_features(keys, self.key_dim, "keys", self, "key_dim")
        return self.key_proj(keys)

    def compare(self, query: Tensor, prepared: Prepared, state: Any = None) -> Tensor:
        check_features(query, self.query_dim, "query", self, "query_dim")
        vector = self.hidden_proj.weight.squeeze(0)
        return additive_scores(self.query_proj(query), prepared, self.gain * vector / vector.norm()) + self.offset
