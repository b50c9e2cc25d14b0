"""The scores of graph attention networks."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.checks import check_count
from saccade.kernels.graph_scores import gat_scores, gatv2_scores
from saccade.scores.base import Prepared, Score, check_features, scores


class _NeighbourScore(Score):
    """The common part of GAT and GATv2: one vector a per head, and a leaky ReLU.

    Args:
        dim: features of queries and keys.
        num_heads: with more than one, the last batch dimension is the heads.
        slope: slope of the leaky ReLU below zero.
    """

    def __init__(self, *, dim: int, num_heads: int = 1, slope: float = 0.2) -> None:
        super().__init__()
        check_count("dim", dim)
        check_count("num_heads", num_heads)
        self.query_dim = self.key_dim = dim
        self.num_heads = num_heads
        self.slope = slope

    def _vector(self, *shape: int) -> nn.Parameter:
        made = nn.Parameter(torch.empty(self.num_heads, *shape))
        nn.init.xavier_uniform_(made)
        return made

    def _per_head(self, vector: Tensor) -> Tensor:
        """(heads, 1, dim), or (dim,) for a single head, whatever the batch is."""
        return vector.unsqueeze(1) if self.num_heads > 1 else vector[0]


@scores.register("gat")
class GATScore(_NeighbourScore):
    r"""A leaky ReLU of one term for the query and one for the key; every query ranks the keys in the same order.

    .. math:: s_{ij} = \operatorname{LeakyReLU}(a_q^\top q_i + a_k^\top k_j)

    In the paper q_i and k_j are W h_i and W h_j, and a is [a_q; a_k].

    Shapes:
        query (*batch, queries, dim), keys (*batch, keys, dim) -> scores (*batch, queries, keys); with several heads
        the last batch dimension is the heads.

    Reference:
        Veličković et al. (2018), arXiv:1710.10903, equation 3.

    Args:
        dim: features of queries and keys.
        num_heads: with more than one, each has its own a.
        slope: slope of the leaky ReLU below zero.
    """

    def __init__(self, *, dim: int, num_heads: int = 1, slope: float = 0.2) -> None:
        super().__init__(dim=dim, num_heads=num_heads, slope=slope)
        self.query_vector = self._vector(dim)
        self.key_vector = self._vector(dim)

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Prepared:
        check_features(keys, self.key_dim, "keys", self, "dim")
        return (keys * self._per_head(self.key_vector)).sum(-1, keepdim=True)

    def compare(self, query: Tensor, prepared: Prepared, state: object = None) -> Tensor:
        check_features(query, self.query_dim, "query", self, "dim")
        asked = (query * self._per_head(self.query_vector)).sum(-1, keepdim=True)
        return F.leaky_relu(asked + prepared.transpose(-1, -2), self.slope)

    def along(
        self, query: Tensor, keys: Tensor, edges: Tensor | None, starts: Tensor, neighbours: Tensor
    ) -> Tensor | None:
        asked, found = (query * self.query_vector).sum(-1), (keys * self.key_vector).sum(-1)
        between = None if edges is None else (edges * self.key_vector).sum(-1)
        return gat_scores(asked, found, between, starts, neighbours, self.slope)


@scores.register("gatv2")
class GATv2Score(_NeighbourScore):
    r"""A leaky ReLU before the inner product, so that different queries can rank the keys differently.

    .. math:: s_{ij} = a^\top \operatorname{LeakyReLU}(q_i + k_j)

    In the paper q_i and k_j are W_l h_i and W_r h_j.

    Shapes:
        query (*batch, queries, dim), keys (*batch, keys, dim) -> scores (*batch, queries, keys); with several heads
        the last batch dimension is the heads.

    Reference:
        Brody et al. (2022), arXiv:2105.14491, equation 7.

    Args:
        dim: features of queries and keys.
        num_heads: with more than one, each has its own a.
        slope: slope of the leaky ReLU below zero.
    """

    def __init__(self, *, dim: int, num_heads: int = 1, slope: float = 0.2) -> None:
        super().__init__(dim=dim, num_heads=num_heads, slope=slope)
        self.vector = self._vector(dim)

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Prepared:
        check_features(keys, self.key_dim, "keys", self, "dim")
        return keys

    def compare(self, query: Tensor, prepared: Prepared, state: object = None) -> Tensor:
        check_features(query, self.query_dim, "query", self, "dim")
        hidden = F.leaky_relu(query.unsqueeze(-2) + prepared.unsqueeze(-3), self.slope)
        return (hidden * self._per_head(self.vector).unsqueeze(-2)).sum(-1)

    def along(
        self, query: Tensor, keys: Tensor, edges: Tensor | None, starts: Tensor, neighbours: Tensor
    ) -> Tensor | None:
        return gatv2_scores(query, keys, edges, self.vector, starts, neighbours, self.slope)
