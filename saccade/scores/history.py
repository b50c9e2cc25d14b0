"""Additive score with history features."""

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from saccade.history import HistoryFeature
from saccade.kernels.additive import additive_scores
from saccade.scores.base import Prepared, Score, check_features, scores


@scores.register("history")
class HistoryScore(Score):
    r"""An additive score that also sees features of each key from earlier steps.

    .. math:: s_{ij} = v^\top \tanh\Big(W q_i + U k_j + \sum_m F_m \phi^{(m)}_{ij} + b\Big)

    phi^(m) are the `features`, from `saccade.history`: any number of them, each with its own weight F_m.

    Shapes:
        query (*batch, 1, query_dim), one step at a time, keys (*batch, keys, key_dim) -> scores (*batch, 1, keys).

    Reference:
        Bahdanau et al. (2015), arXiv:1409.0473, appendix A.1.2, for the score; each feature has its own reference.

    Args:
        query_dim, key_dim, hidden_dim: as in `AdditiveScore`.
        features: the history features. The state is the tuple of their states, in this order.
        bias: whether to add the bias b.
    """

    stateful: bool = True
    pairwise: bool = False

    def __init__(
        self, *, query_dim: int, key_dim: int, hidden_dim: int, features: Sequence[HistoryFeature], bias: bool = True
    ) -> None:
        super().__init__()
        if not features:
            raise ValueError("features is empty: pass at least one from saccade.history, or use AdditiveScore.")
        for feature in features:
            if not isinstance(feature, HistoryFeature):
                raise TypeError(
                    f"features must be HistoryFeatures, got {feature!r}; create one with saccade.history.create(name)."
                )
            for name, ours, theirs in (
                ("query_dim", query_dim, feature.query_dim),
                ("key_dim", key_dim, feature.key_dim),
            ):
                if theirs not in (None, ours):
                    raise ValueError(
                        f"{type(feature).__name__} was built with {name}={theirs}, the score with {name}={ours}: "
                        "they read the same tensors, so build both with the same size."
                    )
        self.query_dim = query_dim
        self.key_dim = key_dim
        self.query_proj = nn.Linear(query_dim, hidden_dim, bias=False)
        self.key_proj = nn.Linear(key_dim, hidden_dim, bias=bias)
        self.hidden_proj = nn.Linear(hidden_dim, 1, bias=False)
        self.features = nn.ModuleList(features)
        self.feature_projs = nn.ModuleList(nn.Linear(f.feature_dim, hidden_dim, bias=False) for f in features)

    @property
    def members(self) -> list[HistoryFeature]:
        return cast(list[HistoryFeature], list(self.features))

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Prepared:
        check_features(keys, self.key_dim, "keys", self, "key_dim")
        return self.key_proj(keys), tuple(feature.prepare(keys) for feature in self.members)

    def begin(self, query: Tensor, prepared: Prepared, mask: Tensor | None = None) -> Any:
        return tuple(f.begin(query, kept, mask) for f, kept in zip(self.members, prepared[1], strict=True))

    def compare(self, query: Tensor, prepared: Prepared, state: Any = None) -> Tensor:
        check_features(query, self.query_dim, "query", self, "query_dim")
        keys, kept_by_features = prepared
        if query.shape[-2] > 0:  # without queries there is no step to compute features for
            state = self.begin(query, prepared) if state is None else state
            _refuse_another_batch(state, query, keys)
            for feature, proj, memory, kept in zip(
                self.members, self.feature_projs, state, kept_by_features, strict=True
            ):
                seen = feature.features(memory, query, kept)
                if seen.shape[-2] != keys.shape[-2]:
                    raise ValueError(
                        f"state was started with {seen.shape[-2]} keys, but the memory has {keys.shape[-2]}: "
                        "after appending keys, start again with state=None."
                    )
                keys = keys + proj(seen)
        return additive_scores(self.query_proj(query), keys, self.hidden_proj.weight.squeeze(0))

    def advance(self, state: Any, weights: Tensor, query: Tensor, prepared: Prepared) -> Any:
        parts = zip(self.members, state, prepared[1], strict=True)
        return tuple(feature.advance(memory, weights, query, kept) for feature, memory, kept in parts)


def _refuse_another_batch(state: Any, query: Tensor, keys: Tensor) -> None:
    """The state has the batch of the keys, or of the queries once a larger batch of queries has read the keys."""
    batches = (keys.shape[:-2], torch.broadcast_shapes(query.shape[:-2], keys.shape[:-2]))
    for memory in state:
        for tensor in memory:
            if not any(tensor.shape[: len(batch)] == batch for batch in batches) or tensor.dim() > len(batches[1]) + 2:
                raise ValueError(
                    f"state with a tensor of shape {tuple(tensor.shape)} does not fit query {tuple(query.shape)} and "
                    f"keys (*{tuple(batches[0])}, keys, key_dim): pass the state of the previous reading of the same "
                    "memory, or None at the first step."
                )
