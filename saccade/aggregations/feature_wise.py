"""Feature-wise expectation."""

from torch import Tensor

from saccade.aggregations.base import Aggregation, aggregations


@aggregations.register("feature_wise")
class FeatureWise(Aggregation):
    r"""The expectation of each value channel under its own weights.

    .. math:: c_{id} = \sum_j p_{dij} v_{jd}

    Shapes:
        weights (*batch, value_dim, queries, keys), values (*batch, keys, value_dim)
        -> context (*batch, queries, value_dim).

    Reference:
        Shen et al. (2018), arXiv:1709.04696, "multi-dimensional attention".
    """

    feature_wise: bool = True

    def forward(
        self,
        weights: Tensor,
        values: Tensor,
        *,
        query: Tensor | None = None,
        scores: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        if weights.shape[-3] != values.shape[-1]:
            raise ValueError(
                f"weights have {weights.shape[-3]} channels and values {values.shape[-1]} features: build the score "
                f"with num_channels={values.shape[-1]}."
            )
        return (weights @ values.transpose(-1, -2).unsqueeze(-1)).squeeze(-1).transpose(-1, -2)
