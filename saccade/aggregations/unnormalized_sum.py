"""Unnormalised sum."""

from saccade.aggregations.base import aggregations
from saccade.aggregations.expectation import Expectation


@aggregations.register("sum")
class UnnormalizedSum(Expectation):
    r"""The weighted sum of the values, without normalising the weights.

    .. math:: c_i = \sum_j w_{ij} v_j

    This is `Expectation` under another name: a selection's marginals need not sum to one (each sigmoid is the
    probability of its own position), and the expectation never divides by their sum. The name makes the intent
    explicit; `RenormalizedMean` divides.

    Shapes:
        weights (*batch, queries, keys), values (*batch, keys, value_dim) -> context (*batch, queries, value_dim).
    """
