"""The expected value."""

from torch import Tensor

from saccade.aggregations.base import Aggregation, aggregations


@aggregations.register("expectation")
class Expectation(Aggregation):
    r"""The sum of the values weighted by the selection's marginals.

    .. math:: c_i = \mathbb{E}[f(v, z)] = \sum_j p(z_j = 1)\, v_j

    Shapes:
        weights (*batch, queries, keys), values (*batch, keys, value_dim) -> context (*batch, queries, value_dim).

    Reference:
        Bahdanau et al. (2015), arXiv:1409.0473, equation 5.
    """

    weighted_sum: bool = True

    def forward(
        self,
        weights: Tensor,
        values: Tensor,
        *,
        query: Tensor | None = None,
        scores: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        return weights @ values
