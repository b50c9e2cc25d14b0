"""Additive score."""

from typing import Any

from torch import Tensor, nn

from saccade.checks import keep_declared
from saccade.kernels.additive import additive_scores
from saccade.scores.base import Prepared, Score, check_features, scores


@scores.register("additive")
class AdditiveScore(Score):
    r"""Compares query and key through one hidden layer.

    .. math:: s_{ij} = \mathrm{act}(v^\top \tanh(W q_i + U k_j + b))

    In the paper q_i is the decoder state s_{i-1} and k_j the annotation h_j; b is used with `bias=True`, and act is the
    identity by default; Kim et al. (2017), arXiv:1702.00887, use `nn.Tanh()` for tree potentials.

    Shapes:
        query (*batch, queries, query_dim), keys (*batch, keys, key_dim) -> scores (*batch, queries, keys).

    Reference:
        Bahdanau et al. (2015), arXiv:1409.0473, appendix A.1.2; W, U, v are W_a, U_a, v_a.
    """

    def __init__(
        self,
        *,
        query_dim: int,
        key_dim: int,
        hidden_dim: int,
        bias: bool = False,
        activation: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.query_dim = query_dim
        self.key_dim = key_dim
        self.query_proj = nn.Linear(query_dim, hidden_dim, bias=False)
        self.key_proj = nn.Linear(key_dim, hidden_dim, bias=bias)
        self.hidden_proj = nn.Linear(hidden_dim, 1, bias=False)
        self.activation = nn.Identity() if activation is None else activation

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        keep_declared(cls, "plain", ("prepare", "compare", "forward"))

    @property
    def plain(self) -> bool:
        """Whether it has neither bias nor activation, so that kernels for many steps may compute it.

        A subclass that overrides any part of the computation must declare this itself; it does not inherit it.
        """
        return self.key_proj.bias is None and type(self.activation) is nn.Identity

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Prepared:
        check_features(keys, self.key_dim, "keys", self, "key_dim")
        return self.key_proj(keys)

    def compare(self, query: Tensor, prepared: Prepared, state: Any = None) -> Tensor:
        check_features(query, self.query_dim, "query", self, "query_dim")
        scores = additive_scores(self.query_proj(query), prepared, self.hidden_proj.weight.squeeze(0))
        activated: Tensor = self.activation(scores)
        return activated
