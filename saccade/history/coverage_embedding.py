"""Coverage embeddings."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from saccade.checks import check_count
from saccade.history.base import HistoryFeature, attendable, features
from saccade.history.gated_update import GatedUpdate


class CoverageEmbeddingState(NamedTuple):
    """The embeddings, and the weights that have not been applied to them yet.

    embedding (*batch, keys, feature_dim); weights (*batch, keys, 1) of the last step, not yet applied; step
    (*batch, 1, 1), whole numbers; attendable bool (*batch, keys).
    """

    embedding: Tensor
    weights: Tensor
    step: Tensor
    attendable: Tensor

    def residual(self) -> Tensor:
        """(*batch,): the sum of |c_j|^2 over the attendable keys, which training pushes to zero.

        The weights of the last step are included after the next query, which has seen the last output.
        """
        return (self.embedding.square().sum(-1) * self.attendable).sum(-1)


@features.register("coverage_embedding")
class CoverageEmbedding(HistoryFeature):
    r"""A vector per key from which every output subtracts its part.

    .. math:: c_{0j} = W_0 k_j, \qquad c_{ij} = c_{i-1,j} - p_{ij}\, W_y y_i
        \quad\text{or}\quad c_{ij} = \mathrm{GRU}(c_{i-1,j};\, [y_i, p_{ij}])

    y_i is the output of step i, known only after that step. The next query depends on that output and is used instead:
    the update of step i happens at the start of step i + 1, with q_{i+1} in place of y_i.

    Shapes:
        keys (*batch, keys, key_dim), query (*batch, 1, query_dim) and weights (*batch, 1, keys) at each step
        -> features (*batch, keys, feature_dim).

    Reference:
        Mi et al. (2016), arXiv:1605.03148, where c_0 is an embedding of the source word; here it is linear in the key.

    Args:
        query_dim, key_dim: features of queries and keys.
        feature_dim: features of an embedding.
        update: "subtraction" or "gru".
    """

    def __init__(
        self, *, query_dim: int, key_dim: int, feature_dim: int = 10, update: Literal["subtraction", "gru"] = "gru"
    ) -> None:
        super().__init__()
        check_count("feature_dim", feature_dim)
        if update not in ("subtraction", "gru"):
            raise ValueError(f"update must be 'subtraction' or 'gru', got {update!r}.")
        self.query_dim = query_dim
        self.key_dim = key_dim
        self.feature_dim = feature_dim
        self.key_proj = nn.Linear(key_dim, feature_dim, bias=False)
        self.gru: GatedUpdate | None = None
        if update == "gru":
            self.gru = GatedUpdate(dim=feature_dim)
            self.weight_proj = nn.Linear(1, 3 * feature_dim, bias=False)
            self.query_proj = nn.Linear(query_dim, 3 * feature_dim)
        else:
            self.query_proj = nn.Linear(query_dim, feature_dim, bias=False)

    def prepare(self, keys: Tensor) -> Tensor:
        """The embeddings before the first step, (*batch, keys, feature_dim)."""
        full: Tensor = self.key_proj(keys)
        return full

    def begin(self, query: Tensor, prepared: Tensor, mask: Tensor | None = None) -> CoverageEmbeddingState:
        step = torch.zeros(*prepared.shape[:-2], 1, 1, dtype=torch.long, device=prepared.device)
        weights = prepared.new_zeros(*prepared.shape[:-1], 1)
        return CoverageEmbeddingState(prepared, weights, step, attendable(prepared, mask))

    def features(self, state: CoverageEmbeddingState, query: Tensor, prepared: Tensor) -> Tensor:
        query = query[..., :1, :]
        if self.gru is None:
            taken: Tensor = state.weights * self.query_proj(query)
            return state.embedding - taken
        updated = self.gru(self.weight_proj(state.weights) + self.query_proj(query), state.embedding)
        return torch.where(state.step > 0, updated, state.embedding)  # before the first step there was no output

    def advance(
        self, state: CoverageEmbeddingState, weights: Tensor, query: Tensor, prepared: Tensor
    ) -> CoverageEmbeddingState:
        embedding = self.features(state, query, prepared)
        return CoverageEmbeddingState(embedding, weights.transpose(-1, -2), state.step + 1, state.attendable)
