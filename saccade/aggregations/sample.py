"""The sampled value."""

from torch import Tensor

from saccade.aggregations.base import aggregations
from saccade.aggregations.expectation import Expectation
from saccade.distributions import Distribution


@aggregations.register("sample")
class Sample(Expectation):
    r"""The value at one position: a sample in training, the mode in evaluation (hard attention).

    .. math:: c_i = \sum_j z_{ij} v_j, \qquad z_i \sim p(z)

    The draw is available as `reading.selection.draw`, so that a loss can use it.

    Shapes:
        weights (*batch, queries, keys), values (*batch, keys, value_dim) -> context (*batch, queries, value_dim).

    Reference:
        Xu et al. (2015), arXiv:1502.03044, section 4.1.
    """

    def weights(self, selection: Distribution) -> Tensor:
        return selection.draw
