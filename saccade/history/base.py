"""What a history feature is."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from saccade.registry import Registry


class HistoryFeature(nn.Module):
    """What a key carries of earlier steps, as a vector: (*batch, keys, feature_dim).

    A new feature writes `begin`, `features` and `advance`, and `prepare` if it looks at the keys themselves. States
    are immutable named tuples of tensors whose first dimensions are the batch, so that beam search can reorder them.
    """

    feature_dim: int
    query_dim: int | None = None
    key_dim: int | None = None

    def prepare(self, keys: Tensor) -> Tensor:
        """What is kept of keys (*batch, keys, key_dim), computed once per memory: (*batch, keys, any)."""
        return keys[..., :0]

    def begin(self, query: Tensor, prepared: Tensor, mask: Tensor | None = None) -> Any:
        """The state before the first step; mask (*batch, keys), True where a key may be attended."""
        raise NotImplementedError

    def features(self, state: Any, query: Tensor, prepared: Tensor) -> Tensor:
        """(*batch, keys, feature_dim) for the step whose query (*batch, 1, query_dim) this is."""
        raise NotImplementedError

    def advance(self, state: Any, weights: Tensor, query: Tensor, prepared: Tensor) -> Any:
        """The state after a step that read weights (*batch, 1, keys)."""
        raise NotImplementedError


features: Registry[HistoryFeature] = Registry(
    "history feature", base=HistoryFeature, home="saccade.history", plural="history"
)


def attendable(prepared: Tensor, mask: Tensor | None) -> Tensor:
    """bool (*batch, keys): the mask in full, or all True."""
    if mask is None:
        return torch.ones(prepared.shape[:-1], dtype=torch.bool, device=prepared.device)
    return mask.expand(prepared.shape[:-1])


def summing_dtype(prepared: Tensor) -> torch.dtype:
    """Single precision at least: a sum over many steps in half precision comes to a halt."""
    return torch.promote_types(prepared.dtype, torch.float32)
