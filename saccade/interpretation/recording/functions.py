"""The functions and operators that `record` sees, and where callers look them up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from saccade.interpretation.recording.flex import flex_changed, flex_forward
from saccade.interpretation.recording.jagged import Jagged
from saccade.interpretation.recording.multihead import encoder_layer_forward, functional_forward, native_forward
from saccade.interpretation.recording.recipes import Captured, Change, ScaledDot, grouped, scaled_dot
from saccade.kernels.private_torch import FLEX_OPERATOR, NATIVE_ENCODER_LAYER, NATIVE_MULTI_HEAD, SOFTMAX_KERNEL

Changed = tuple[Any, Tensor, Tensor] | None
"""What the function returns with changed weights, these weights, and the keys; None if they were left as they are."""


class Function(NamedTuple):
    """A function that computes attention.

    Args:
        module: the module that defines it.
        name: its name there.
        attend: takes the arguments of a call and says what was attended.
        changed: takes the original function, a change and the arguments of a call, and computes the call with changed
            weights; None for functions that are avoided while weights are changed.
        suffix: the name of the submodule that a fused layer skips.
    """

    module: str
    name: str
    attend: Callable[..., Captured]
    changed: Callable[..., Changed] | None = None
    suffix: str = ""


def sdpa_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Captured:
    """A call of `F.scaled_dot_product_attention`."""
    if query.is_nested:
        return Captured(Jagged(_number(scale), bool(is_causal)), {"query": query, "key": key})
    tensors = {"query": query, "key": key}
    if attn_mask is not None:
        tensors["mask"] = attn_mask
    return Captured(scaled_dot(_number(scale), bool(is_causal)), tensors)


def _number(scale: Any) -> float | None:
    """A scale as it is now: it may be a tensor, whose value changes."""
    return None if scale is None else float(scale.detach() if isinstance(scale, Tensor) else scale)


def sdpa_changed(
    original: Callable[..., Tensor],
    change: Change,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    *args: Any,
    **kwargs: Any,
) -> Changed:
    """`F.scaled_dot_product_attention` with changed weights."""
    if query.is_nested:
        raise NotImplementedError("The weights of nested tensors cannot be changed: use padded ones.")
    recipe, tensors = sdpa_forward(query, key, value, attn_mask, dropout_p, *args, **kwargs)
    assert isinstance(recipe, ScaledDot)
    own = recipe.compute(tensors, slice(0, query.shape[-2]))
    weights = change(own, recipe.allowed(tensors), key.detach())
    if weights is own:
        return None
    value = grouped(value, query.shape[-3]) if query.dim() > 2 else value
    dropped = F.dropout(weights, dropout_p).reshape(*recipe.leading(tensors), *weights.shape[-2:])
    return dropped.to(value.dtype) @ value, weights, key


SCALED_DOT = Function("torch.nn.functional", "scaled_dot_product_attention", sdpa_forward, sdpa_changed)
ATTENTION = (
    SCALED_DOT,
    Function("torch.nn.functional", "multi_head_attention_forward", functional_forward),
    Function(*NATIVE_MULTI_HEAD, native_forward),
    Function(*NATIVE_ENCODER_LAYER, encoder_layer_forward, suffix="self_attn"),
    Function(*FLEX_OPERATOR, flex_forward, flex_changed),
)
SOFTMAX: dict[str, Callable[..., Tensor]] = {
    **dict.fromkeys(("softmax.int", "softmax.int_out"), torch.softmax),
    **dict.fromkeys(("_softmax", "_softmax.out"), SOFTMAX_KERNEL),
}
"""Operators, with a function that calls each of them: every other softmax of PyTorch calls the first ones."""
CONCATENATION = ("torch", "cat")
EDGE_SOFTMAX = ("torch_geometric.utils", "softmax")
