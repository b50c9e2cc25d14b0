"""Dot product of two networks."""

from torch import Tensor, nn

from saccade.scores.base import DotProduct, Prepared, Score, check_features, scores


@scores.register("mlp_dot")
class MLPDotScore(Score):
    r"""The inner product of query and key, each after a network of its own with one hidden layer.

    .. math:: s_{ij} = \phi(q_i)^\top \psi(k_j), \qquad \phi(x) = W_2 \tanh(W_1 x + b_1)

    Shapes:
        query (*batch, queries, query_dim), keys (*batch, keys, key_dim) -> scores (*batch, queries, keys).

    Reference:
        Chan et al. (2015), arXiv:1508.01211, equation 9: q_i is s_i, k_j is h_u.
    """

    def __init__(self, *, query_dim: int, key_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.query_dim = query_dim
        self.key_dim = key_dim
        self.query_net = _network(query_dim, hidden_dim)
        self.key_net = _network(key_dim, hidden_dim)

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Prepared:
        check_features(keys, self.key_dim, "keys", self, "key_dim")
        return self.key_net(keys)

    def as_dot_product(self, query: Tensor, prepared: Prepared) -> DotProduct:
        check_features(query, self.query_dim, "query", self, "query_dim")
        return DotProduct(self.query_net(query), prepared, 1.0)


def _network(input_dim: int, hidden_dim: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(input_dim, hidden_dim), nn.Tanh(), nn.Linear(hidden_dim, hidden_dim, bias=False))
