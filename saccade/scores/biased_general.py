"""Biased general score."""

from typing import ClassVar

from saccade.scores.base import scores
from saccade.scores.bilinear import BilinearScore


@scores.register("biased_general")
class BiasedGeneralScore(BilinearScore):
    r"""A bilinear score with a query-independent bias, so that some keys match every query.

    .. math:: s_{ij} = k_j^\top (W q_i + b)

    Shapes:
        query (*batch, queries, query_dim), keys (*batch, keys, key_dim) -> scores (*batch, queries, keys).

    Reference:
        Sordoni et al. (2016), arXiv:1606.02245.
    """

    _bias: ClassVar[bool] = True
