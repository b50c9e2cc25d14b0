"""The functions of PyTorch that are attention or a softmax, and where their callers look them up."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

from saccade.interpretation.recording.flex import flex_forward
from saccade.interpretation.recording.multihead import encoder_layer_forward, functional_forward, native_forward
from saccade.interpretation.recording.recipes import Attended, ScaledDot


class Function(NamedTuple):
    """A function that is attention.

    Args:
        module: whose attribute it is.
        name: of the attribute.
        attend: what a call with the same arguments attends to.
        suffix: the module inside of the layer that the function, being its fast path, does not run.
    """

    module: str
    name: str
    attend: Callable[..., Attended]
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
) -> Attended:
    """A call of `F.scaled_dot_product_attention`."""
    tensors = {"query": query, "key": key}
    if attn_mask is not None:
        tensors["mask"] = attn_mask
    return Attended(_scaled_dot(scale, is_causal), tensors)


_scaled_dot = functools.lru_cache(maxsize=64)(ScaledDot)  # the layers of a model have the same


ATTENTION = (
    Function("torch.nn.functional", "scaled_dot_product_attention", sdpa_forward),
    Function("torch.nn.functional", "multi_head_attention_forward", functional_forward),
    Function("torch", "_native_multi_head_attention", native_forward),
    Function("torch", "_transformer_encoder_layer_fwd", encoder_layer_forward, "self_attn"),
    Function("torch.nn.attention.flex_attention", "flex_attention_hop", flex_forward),
)
SOFTMAX = (("torch.nn.functional", "softmax"), ("torch", "softmax"), ("torch.special", "softmax"))
EDGE_SOFTMAX = ("torch_geometric.utils", "softmax")
