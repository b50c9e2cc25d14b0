"""What an aggregation is."""

from __future__ import annotations

from torch import Tensor, nn

from saccade.distributions import Distribution
from saccade.registry import Registry


class Aggregation(nn.Module):
    """What is read from the values, given the selection.

    A new aggregation writes `forward`, and `weights` if it reads something else than the expectation's coefficients.
    """

    feature_wise: bool = False
    """Whether it reads weights with a channels axis: (*batch, channels, queries, keys)."""

    def weights(self, selection: Distribution) -> Tensor:
        """What is read from the selection; attention dropout falls on this."""
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
        """The context (*batch, queries, output_dim).

        Args:
            weights: (*batch, queries, keys), from `weights`.
            values: (*batch, keys, value_dim).
            query: (*batch, queries, query_dim).
            scores: (*batch, queries, keys), before the selection.
            mask: bool, broadcastable to the scores.
        """
        raise NotImplementedError


aggregations: Registry[Aggregation] = Registry("aggregation")
