"""Content addressing of the neural Turing machine."""

from torch import Tensor, nn
from torch.nn import functional as F

from saccade.scores.base import DotProduct, Prepared, Score, check_features, scores
from saccade.scores.cosine import SMALLEST_NORM


@scores.register("ntm_content")
class NTMContentScore(Score):
    r"""Cosine between key and projected query, scaled by a strength computed from the query.

    .. math:: s_{ij} = \beta_i \cos(W q_i, k_j), \qquad \beta_i = \log(1 + \exp(u^\top q_i + b)) \ge 0

    In the paper q_i is the controller's output, W q_i the key vector it emits and k_j a row of the memory. The steps
    after the softmax (interpolation, shift, sharpening) are a selection, `NTMAddressing`.

    Shapes:
        query (*batch, queries, query_dim), keys (*batch, keys, key_dim) -> scores (*batch, queries, keys).

    Reference:
        Graves et al. (2014), arXiv:1410.5401, section 3.3.1.
    """

    def __init__(self, *, query_dim: int, key_dim: int) -> None:
        super().__init__()
        self.query_dim = query_dim
        self.key_dim = key_dim
        self.query_proj = nn.Linear(query_dim, key_dim, bias=False)
        self.strength_proj = nn.Linear(query_dim, 1)

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Prepared:
        check_features(keys, self.key_dim, "keys", self, "key_dim")
        return F.normalize(keys, dim=-1, eps=SMALLEST_NORM)

    def as_dot_product(self, query: Tensor, prepared: Prepared) -> DotProduct:
        check_features(query, self.query_dim, "query", self, "query_dim")
        direction = F.normalize(self.query_proj(query), dim=-1, eps=SMALLEST_NORM)
        return DotProduct(F.softplus(self.strength_proj(query)) * direction, prepared, 1.0)
