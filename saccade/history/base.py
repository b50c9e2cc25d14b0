"""The base class of history features."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from saccade.registry import Registry


class HistoryFeature(nn.Module):
    """A vector per key that depends on earlier steps: (*batch, keys, feature_dim).

    A new feature implements `begin`, `features` and `advance`, and `prepare` if it uses the keys themselves. States are
    immutable named tuples of tensors whose first dimensions are the batch, so that beam search can reorder them.
    """

    feature_dim: int
    query_dim: int | None = None
    key_dim: int | None = None

    def prepare(self, keys: Tensor) -> Tensor:
        """Prepares keys (*batch, keys, key_dim), once per memory: (*batch, keys, any)."""
        return keys[..., :0]

    def begin(self, query: Tensor, prepared: Tensor, mask: Tensor | None = None) -> Any:
        """The state before the first step; mask (*batch, keys), True where a key may be attended."""
        raise NotImplementedError

    def features(self, state: Any, query: Tensor, prepared: Tensor) -> Tensor:
        """(*batch, keys, feature_dim) for the step with this query (*batch, 1, query_dim)."""
        raise NotImplementedError

    def advance(self, state: Any, weights: Tensor, query: Tensor, prepared: Tensor) -> Any:
        """The state after a step that read weights (*batch, 1, keys)."""
        raise NotImplementedError


features: Registry[HistoryFeature] = Registry(
    "history feature", base=HistoryFeature, home="saccade.history", plural="history"
)


def attendable(prepared: Tensor, mask: Tensor | None) -> Tensor:
    """bool (*batch, keys): the expanded mask, or all True."""
    if mask is None:
        return torch.ones(prepared.shape[:-1], dtype=torch.bool, device=prepared.device)
    return mask.expand(prepared.shape[:-1])


def summing_dtype(prepared: Tensor) -> torch.dtype:
    """At least single precision: in half precision, a sum over many steps stops growing."""
    return torch.promote_types(prepared.dtype, torch.float32)
