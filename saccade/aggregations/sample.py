"""The value that was picked."""

from torch import Tensor

from saccade.aggregations.base import aggregations
from saccade.aggregations.expectation import Expectation
from saccade.distributions import Distribution


@aggregations.register("sample")
class Sample(Expectation):
    r"""The value at the position that was drawn: a sample in training, the mode in evaluation (hard attention).

    .. math:: c_i = \sum_j z_{ij} v_j, \qquad z_i \sim p(z)

    What was drawn stays with the reading as `reading.selection.draw`, so that a loss can score it.

    Shapes:
        weights (*batch, queries, keys), values (*batch, keys, value_dim) -> context (*batch, queries, value_dim).

    Reference:
        Xu et al. (2015), arXiv:1502.03044, section 4.1.
    """

    def weights(self, selection: Distribution) -> Tensor:
        return selection.draw
