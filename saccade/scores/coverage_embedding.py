"""Coverage embedding score."""

from typing import Literal

from saccade.history import CoverageEmbedding
from saccade.scores.base import scores
from saccade.scores.history import HistoryScore


@scores.register("coverage_embedding")
class CoverageEmbeddingScore(HistoryScore):
    r"""An additive score that also sees an embedding of how much of each key is still uncovered.

    .. math:: s_{ij} = v^\top \tanh(W q_i + U k_j + W_c c_{i-1,j}), \qquad c_{0j} = W_0 k_j, \qquad
        c_{ij} = c_{i-1,j} - p_{ij}\, W_y y_i \quad\text{or}\quad c_{ij} = \mathrm{GRU}(c_{i-1,j};\, [y_i, p_{ij}])

    y_i is the output of step i, known only after that step. The next query depends on that output and is used instead:
    the update of step i happens at the start of step i + 1, with q_{i+1} in place of y_i. In training, add
    `reading.state.score[0].residual()` to the loss, which pushes the embeddings to zero.

    Shapes:
        query (*batch, 1, query_dim), one step at a time, keys (*batch, keys, key_dim) -> scores (*batch, 1, keys).

    Reference:
        Mi et al. (2016), arXiv:1605.03148, where c_0 is an embedding of the source word; here it is linear in the key.
    """

    def __init__(
        self,
        *,
        query_dim: int,
        key_dim: int,
        hidden_dim: int,
        feature_dim: int = 10,
        update: Literal["subtraction", "gru"] = "gru",
    ) -> None:
        super().__init__(
            query_dim=query_dim,
            key_dim=key_dim,
            hidden_dim=hidden_dim,
            features=[CoverageEmbedding(query_dim=query_dim, key_dim=key_dim, feature_dim=feature_dim, update=update)],
            bias=False,
        )
