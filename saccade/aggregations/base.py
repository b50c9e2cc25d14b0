"""The base class of aggregations."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from saccade.checks import keep_declared
from saccade.distributions import Distribution
from saccade.registry import Registry


class Aggregation(nn.Module):
    """Reads the values, given the selection.

    A new aggregation implements `forward`, and `weights` if it needs anything but the expectation's coefficients.
    """

    feature_wise: bool = False
    """Whether it reads weights with a channels axis: (*batch, channels, queries, keys)."""

    joins_queries: bool = False
    """Whether there is one context for all queries together: (*batch, 1, output_dim)."""

    reads_ids: bool = False
    """Whether the values are token ids."""

    weighted_sum: bool = False
    """Whether the context is `weights @ values` and nothing else, so that fused kernels may compute it.

    A subclass that overrides `weights` or `forward` must declare this itself; it does not inherit it.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        keep_declared(cls, "weighted_sum", ("forward", "weights"))

    def weights(self, selection: Distribution) -> Tensor:
        """The weights that are used from the selection; attention dropout applies to them."""
        return selection.coefficients

    def output_dim(self, value_dim: int) -> int:
        """The size of the context for values of size `value_dim`."""
        return value_dim

    def forward(
        self,
        weights: Tensor,
        values: Tensor,
        *,
        query: Tensor | None = None,
        scores: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Returns the context (*batch, queries, output_dim); a row without weight gives zeros and finite gradients.

        Args:
            weights: (*batch, queries, keys), from `weights`, after attention dropout.
            values: (*batch, keys, value_dim).
            query: (*batch, queries, query_dim).
            scores: (*batch, queries, keys), before the selection.
            mask: bool, broadcastable to the scores.
        """
        raise NotImplementedError


class MarginalAggregation(Aggregation):
    """An aggregation that needs non-negative weights: it uses the marginals even with a basis over the values."""

    def weights(self, selection: Distribution) -> Tensor:
        return selection.marginals


aggregations: Registry[Aggregation] = Registry("aggregation", base=Aggregation, home="saccade.aggregations")
