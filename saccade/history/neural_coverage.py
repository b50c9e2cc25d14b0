"""Neural coverage: a vector per key, updated by a network."""

from torch import Tensor, nn

from saccade.checks import check_count
from saccade.history.base import HistoryFeature, features
from saccade.history.coverage import CoverageState
from saccade.history.gated_update import GatedUpdate


@features.register("neural_coverage")
class NeuralCoverage(HistoryFeature):
    r"""A vector per key, updated by a gated recurrent unit from the weight, the key and the query.

    .. math:: C_{ij} = \mathrm{GRU}(C_{i-1,j};\, [p_{ij}, k_j, q_i]), \qquad C_{0j} = 0

    Shapes:
        keys (*batch, keys, key_dim), query (*batch, 1, query_dim) and weights (*batch, 1, keys) at each step
        -> features (*batch, keys, feature_dim).

    Reference:
        Tu et al. (2016), arXiv:1601.04811, section 3.1.2; k_j is h_j, q_i is t_{i-1}; sizes 1 and 10.
    """

    def __init__(self, *, query_dim: int, key_dim: int, feature_dim: int = 10) -> None:
        super().__init__()
        check_count("feature_dim", feature_dim)
        self.query_dim = query_dim
        self.key_dim = key_dim
        self.feature_dim = feature_dim
        self.weight_proj = nn.Linear(1, 3 * feature_dim, bias=False)
        self.key_proj = nn.Linear(key_dim, 3 * feature_dim)
        self.query_proj = nn.Linear(query_dim, 3 * feature_dim, bias=False)
        self.update = GatedUpdate(dim=feature_dim)

    def prepare(self, keys: Tensor) -> Tensor:
        """The keys' part of the input to the recurrent unit, (*batch, keys, 3 feature_dim)."""
        projected: Tensor = self.key_proj(keys)
        return projected

    def begin(self, query: Tensor, prepared: Tensor, mask: Tensor | None = None) -> CoverageState:
        return CoverageState(prepared.new_zeros(*prepared.shape[:-1], self.feature_dim))

    def features(self, state: CoverageState, query: Tensor, prepared: Tensor) -> Tensor:
        return state.coverage

    def advance(self, state: CoverageState, weights: Tensor, query: Tensor, prepared: Tensor) -> CoverageState:
        inputs = prepared + self.weight_proj(weights.transpose(-1, -2)) + self.query_proj(query)
        return CoverageState(self.update(inputs, state.coverage))
