"""Concatenation of the top values."""

from torch import Tensor
from torch.nn import functional as F

from saccade.aggregations.base import MarginalAggregation, aggregations
from saccade.checks import check_count
from saccade.kernels.top_k import largest


@aggregations.register("concat_picks")
class ConcatPicks(MarginalAggregation):
    r"""Concatenates the values at the k largest weights, largest weight first.

    .. math:: c_i = [w_{i j_1} v_{j_1}; \dots; w_{i j_k} v_{j_k}], \qquad (j_1, \dots, j_k) = \text{top}_k(w_i)

    Without `weighted` the values are not multiplied by their weights, and the weights get no gradient. A key with
    weight zero is never picked; missing picks are zeros.

    Shapes:
        weights (*batch, queries, keys), values (*batch, keys, value_dim) -> context (*batch, queries, k * value_dim).

    Args:
        k: how many values to pick; ties go to the earlier key.
        weighted: whether each value is multiplied by its weight.
    """

    def __init__(self, *, k: int = 4, weighted: bool = True) -> None:
        super().__init__()
        check_count("k", k)
        self.k = k
        self.weighted = weighted

    def output_dim(self, value_dim: int) -> int:
        return self.k * value_dim

    def forward(
        self,
        weights: Tensor,
        values: Tensor,
        *,
        query: Tensor | None = None,
        scores: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        index = largest(weights, self.k)
        factors = weights.gather(-1, index)
        if not self.weighted:
            factors = (factors > 0).to(weights.dtype)
        rows = index.flatten(-2).unsqueeze(-1)
        picks = values.gather(-2, rows.expand(*rows.shape[:-1], values.shape[-1]))
        picks = factors.unsqueeze(-1) * picks.reshape(*index.shape, values.shape[-1])
        return F.pad(picks, (0, 0, 0, self.k - index.shape[-1])).flatten(-2)
