"""`nn.MultiheadAttention` and `nn.TransformerEncoderLayer`, on their plain and fast paths."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from saccade.interpretation.recording.recipes import Captured, Recipe, ScaledDot, Shape, Tensors

PADDING, BOTH = 1, 2
"""Mask types of the fast paths: over keys (batch, keys), or both masks merged; 0 is a mask (queries, keys)."""


@dataclass(frozen=True)
class Projected(Recipe):
    """Attention whose queries and keys are not projected yet.

    Tensors:
        query, key: batch first, before the projection; nested tensors are padded when the weights are read, and
            padded queries get zeros.
        weight, bias: the projections to queries, keys and values, as one matrix, which is faster to record; or
        query_weight, key_weight, query_bias, key_bias: those to queries and keys.
        norm_weight, norm_bias: of a layer norm before them.
        extra_key: (1, 1, dim), appended to the projected keys (`add_bias_kv`).
        static_key: (batch * heads, keys, head_dim), replaces the projected keys.
        mask: (queries, keys) or (batch * heads, queries, keys), bool (True = may NOT be attended) or added.
        padding: (batch, keys), the same.
    """

    num_heads: int
    zero_key: bool = False
    norm_eps: float = 1e-5

    def shape(self, tensors: Tensors) -> Shape:
        query, key = tensors["query"], tensors["key"]
        keys = tensors["static_key"].shape[1] if "static_key" in tensors else _length(key)
        return query.size(0), self.num_heads, _length(query), keys + ("extra_key" in tensors) + self.zero_key

    def resolve(self, tensors: Tensors) -> Captured:
        tensors = apart(tensors)
        query, key = tensors["query"], tensors["key"]
        hidden: Tensor | None = None
        if query.is_nested:
            sizes = torch.tensor([part.shape[0] for part in query.unbind()], device=query.device)
            query = key = query.to_padded_tensor(0.0)
            hidden = torch.arange(query.shape[1], device=query.device) >= sizes[:, None]
        if "norm_weight" in tensors:
            norm = tensors["norm_weight"], tensors.get("norm_bias")
            query = key = F.layer_norm(query, query.shape[-1:], *norm, self.norm_eps)
        batch = query.shape[0]
        dtype = tensors["query_weight"].dtype  # autocast may have given others
        query = F.linear(query.to(dtype), tensors["query_weight"], tensors.get("query_bias"))
        key = F.linear(key.to(dtype), tensors["key_weight"], tensors.get("key_bias"))
        if "extra_key" in tensors:
            key = torch.cat([key, tensors["extra_key"].expand(batch, 1, -1)], dim=1)
        query, key = (part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in (query, key))
        if "static_key" in tensors:
            key = tensors["static_key"].unflatten(0, (batch, self.num_heads))
        if self.zero_key:
            key = torch.cat([key, key.new_zeros(*key.shape[:2], 1, key.shape[-1])], dim=2)
        found: Tensors = {"query": query, "key": key}
        mask = _merge(tensors.get("mask"), tensors.get("padding"), batch, self.num_heads, key.shape[2], query.dtype)
        if hidden is not None:
            nowhere = hidden[:, None, :, None] | hidden[:, None, None, :]
            mask = torch.zeros(nowhere.shape, dtype=query.dtype, device=query.device).masked_fill_(nowhere, -torch.inf)
        if mask is not None:
            found["mask"] = mask
        return Captured(ScaledDot(), found)

    def compute(self, tensors: Tensors, rows: slice) -> Tensor:
        recipe, resolved = self.resolve(tensors)
        return recipe.compute(resolved, rows)

    def choose(self, tensors: Tensors, heads: list[int]) -> Captured:
        recipe, resolved = self.resolve(tensors)
        return recipe.choose(resolved, heads)


projected = lru_cache(maxsize=256)(Projected)
"""Cached recipes, as `scaled_dot`."""


def functional_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> Captured:
    """A call of `F.multi_head_attention_forward`, whose inputs are sequence first."""
    if query.dim() == 2:
        query, key = query.unsqueeze(1), key.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    first = query.transpose(0, 1)
    tensors = {
        "query": first,
        "key": first if key is query else key.transpose(0, 1),
        "weight": None if use_separate_proj_weight else in_proj_weight,
        "query_weight": q_proj_weight if use_separate_proj_weight else None,
        "key_weight": k_proj_weight if use_separate_proj_weight else None,
        "bias": in_proj_bias,
        "extra_key": bias_k,
        "static_key": static_k,
        "mask": attn_mask,
        "padding": key_padding_mask,
    }
    return Captured(projected(num_heads, add_zero_attn), _given(tensors))


def native_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_heads: int,
    in_proj_weight: Tensor,
    in_proj_bias: Tensor,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> Captured:
    """A call of the fast path of `nn.MultiheadAttention`."""
    tensors = {"query": query, "key": key, "weight": in_proj_weight, "bias": in_proj_bias}
    return Captured(projected(num_heads), _masked(tensors, mask, mask_type))


def encoder_layer_forward(
    source: Tensor,
    embed_dim: int,
    num_heads: int,
    in_proj_weight: Tensor,
    in_proj_bias: Tensor,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor,
    gelu: bool,
    norm_first: bool,
    norm_eps: float,
    norm_weight: Tensor,
    norm_bias: Tensor,
    *others: Any,
) -> Captured:
    """A call of the fast path of `nn.TransformerEncoderLayer`."""
    mask, mask_type = others[6:8]  # after the second norm and the two linear layers
    tensors = {"query": source, "key": source, "weight": in_proj_weight, "bias": in_proj_bias}
    if norm_first:
        tensors |= {"norm_weight": norm_weight, "norm_bias": norm_bias}
    return Captured(projected(num_heads, norm_eps=norm_eps), _masked(tensors, mask, mask_type))


def apart(tensors: Tensors) -> Tensors:
    """The tensors of a `Projected` call, with one projection for queries and one for keys."""
    apart = {part: tensor for part, tensor in tensors.items() if part not in ("weight", "bias")}
    for part in tensors.keys() - apart.keys():
        apart[f"query_{part}"], apart[f"key_{part}"], _ = tensors[part].chunk(3)
    return apart


def _masked(tensors: Tensors, mask: Tensor | None, kind: int | None) -> Tensors:
    if mask is not None:
        tensors["padding" if kind == PADDING else "mask"] = mask.flatten(0, 1) if kind == BOTH else mask
    return tensors


def _given(tensors: dict[str, Tensor | None]) -> Tensors:
    return {name: tensor for name, tensor in tensors.items() if tensor is not None}


def _length(tensor: Tensor) -> int:
    return max(part.shape[0] for part in tensor.unbind()) if tensor.is_nested else tensor.shape[1]


def _merge(
    mask: Tensor | None, padding: Tensor | None, batch: int, heads: int, keys: int, dtype: torch.dtype
) -> Tensor | None:
    """Both masks as one to add to the scores; appended keys may always be attended."""
    merged: Tensor | None = None
    if mask is not None:
        merged = _extend(_added(mask, dtype), keys)
        merged = merged if merged.dim() == 2 else merged.unflatten(0, (batch, heads))
    if padding is not None:
        over_keys = _extend(_added(padding, dtype), keys)[:, None, None, :]
        merged = over_keys if merged is None else merged + over_keys
    return merged


def _added(mask: Tensor, dtype: torch.dtype) -> Tensor:
    if mask.dtype != torch.bool:
        return mask
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(mask, -torch.inf)


def _extend(mask: Tensor, keys: int) -> Tensor:
    return F.pad(mask, (0, keys - mask.shape[-1]))
