"""Soft children in a tree."""

from torch import Tensor

from saccade.aggregations.base import MarginalAggregation, aggregations


@aggregations.register("soft_children")
class SoftChildren(MarginalAggregation):
    r"""The sum of the values of the words that attend to a word: in a tree, its expected children.

    .. math:: c_h = \sum_{d \neq h} p(z_{dh} = 1)\, v_d

    This reads self-attention in reverse. A word that attends to itself (a root) is not its own child, and a word that
    no other may attend is treated as absent, so it is not a child either.

    Shapes:
        weights (*batch, n, n), values (*batch, n, value_dim) -> context (*batch, n, value_dim).

    Reference:
        Kim et al. (2017), arXiv:1702.00887, section 3.2.
    """

    def forward(
        self,
        weights: Tensor,
        values: Tensor,
        *,
        query: Tensor | None = None,
        scores: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        if weights.shape[-1] != weights.shape[-2]:
            raise ValueError(
                f"soft children need self-attention, with as many queries as keys, got weights {tuple(weights.shape)}."
            )
        if mask is not None:
            present = mask.expand(weights.shape).any(-2)
            weights = weights.masked_fill(~present.unsqueeze(-1), 0.0)
        roots = weights.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
        return weights.transpose(-1, -2) @ values - roots * values
