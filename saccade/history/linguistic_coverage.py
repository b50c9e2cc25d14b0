"""Coverage relative to the fertility of each key."""

from torch import Tensor, nn

from saccade.history.base import features
from saccade.history.coverage import Coverage, CoverageState

SMALLEST_FERTILITY = 0.05
"""Lower bound on the fertility, which avoids division by zero."""


@features.register("linguistic_coverage")
class LinguisticCoverage(Coverage):
    r"""The share of each key's fertility that is used up so far.

    .. math:: C_{ij} = C_{i-1,j} + \frac{p_{ij}}{\Phi_j}, \qquad \Phi_j = N\, \sigma(U_f k_j)

    Phi_j is the fertility of the key: the expected number of outputs it contributes to, at most N = `max_fertility`.

    Shapes:
        keys (*batch, keys, key_dim), weights (*batch, 1, keys) at each step -> features (*batch, keys, 1).

    Reference:
        Tu et al. (2016), arXiv:1601.04811, section 3.1.1; k_j is h_j. Phi is held at 0.05 or above.
    """

    def __init__(self, *, key_dim: int, max_fertility: float = 2.0) -> None:
        super().__init__()
        if max_fertility <= SMALLEST_FERTILITY:
            raise ValueError(f"max_fertility must be above {SMALLEST_FERTILITY}, got {max_fertility}.")
        self.key_dim = key_dim
        self.max_fertility = max_fertility
        self.fertility_proj = nn.Linear(key_dim, 1, bias=False)

    def prepare(self, keys: Tensor) -> Tensor:
        """The fertility of each key, (*batch, keys, 1)."""
        logit: Tensor = self.fertility_proj(keys)
        return (self.max_fertility * logit.sigmoid()).clamp(min=SMALLEST_FERTILITY)

    def advance(self, state: CoverageState, weights: Tensor, query: Tensor, prepared: Tensor) -> CoverageState:
        return CoverageState(state.coverage + weights.transpose(-1, -2) / prepared)
