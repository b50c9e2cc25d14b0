"""The steps of a Transformer decoder by one kernel, where that applies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.attention import Attention
from saccade.kernels import decoder_step, native
from saccade.kernels.decoder_step import Computed, Layer, Norm, PastSteps, Source
from saccade.kernels.finite import surely_finite
from saccade.kernels.linear import Activation, PackedLayers
from saccade.kernels.private_torch import function_modes, hooked
from saccade.layers import FeedForward, TransformerDecoderLayer
from saccade.layers.transformer import empty_cache
from saccade.memory import Memory
from saccade.multihead import MultiHead


class FusedState(NamedTuple):
    """The state of a `TransformerDecoder` whose steps are computed by one kernel.

    Neither the sources nor the past are ever moved: `past` says where those of each hypothesis are.
    """

    kernel: decoder_step.DecoderWeights
    source: Source
    memories: tuple[Memory, ...]
    past: PastSteps

    def index(self, rows: Tensor) -> FusedState:  # type: ignore[override]
        """Selects rows, which may repeat."""
        past = self.past
        ancestry, sentences = past.ancestry.index_select(0, rows), past.sentences.index_select(0, rows)
        return self._replace(past=PastSteps(past.steps, ancestry, sentences))


def begin(
    layers: Sequence[TransformerDecoderLayer],
    final_norm: nn.Module,
    memories: tuple[Memory, ...],
    mask: Tensor,
    packed: PackedLayers,
) -> FusedState | None:
    """The state before the first step; None if the kernel cannot compute these layers, or something watches them.

    `packed` keeps the linear layers as the kernel reads them.
    """
    if not applies(layers) or hooked(final_norm) or any(hooked(layer) for layer in layers):
        return None
    if any(part.training for layer in layers for part in layer.modules()):  # dropout may be on in a part alone
        return None
    kernel = _kernel(layers, final_norm, packed)
    if kernel is None or not all(memory.values.dtype is torch.float32 for memory in memories):
        return None
    keys, values = [memory.prepared[0] for memory in memories], [memory.values for memory in memories]
    source = Source(keys, values, mask, kernel.layers)
    past = PastSteps((), torch.zeros(len(mask), 0, dtype=torch.long), torch.arange(len(mask)))
    return FusedState(kernel, source, memories, past)


def applies(layers: Sequence[TransformerDecoderLayer]) -> bool:
    """Whether the layers are on a CPU, need no gradient, and nothing watches what they compute."""
    first = layers[0].self_attention
    if torch.is_grad_enabled() or torch.is_autocast_enabled("cpu") or function_modes():
        return False
    return native.usable(layers[0].around_self.norm.weight) and not first.attention.watched()


def step(inputs: Tensor, state: FusedState) -> tuple[Computed, FusedState] | None:
    """One step of inputs (rows, dim); None if a number in it is not finite."""
    past = state.past
    computed = state.kernel(inputs.contiguous(), state.source, past)
    if not surely_finite(computed.features):
        return None
    ancestry = torch.cat([past.ancestry, torch.arange(len(inputs))[:, None]], dim=1)
    return computed, state._replace(past=PastSteps((*past.steps, computed.now), ancestry, past.sentences))


def plain(
    layers: Sequence[TransformerDecoderLayer], state: FusedState
) -> tuple[tuple[Memory, ...], tuple[Memory, ...]]:
    """The sources and the past of each layer as memories, for the plain step."""
    past, caches = state.past, []
    for number, layer in enumerate(layers):
        heads = layer.self_attention
        cache = empty_cache(heads, torch.zeros(len(past.ancestry), 0, heads.query_dim))
        if past.steps:
            gathered = [now[number].index_select(0, past.ancestry[:, t]) for t, now in enumerate(past.steps)]
            both = torch.stack(gathered, dim=2)  # keys and values (rows, 2, steps, dim)
            keys, values = both.unflatten(-1, (heads.num_heads, -1)).transpose(2, 3).unbind(1)
            cache = replace(cache, prepared=(keys, cache.prepared[1]), values=values)
        caches.append(cache)
    return tuple(memory.index(past.sentences) for memory in state.memories), tuple(caches)


def _kernel(
    layers: Sequence[TransformerDecoderLayer], final_norm: nn.Module, packed: PackedLayers
) -> decoder_step.DecoderWeights | None:
    """The kernel for these layers, if all are alike and of the usual parts."""
    kinds = {_kind(layer) for layer in layers}
    if len(kinds) != 1 or None in kinds:
        return None
    kind = kinds.pop()
    assert kind is not None
    final = _norm(final_norm, kind.epsilon) if isinstance(final_norm, nn.LayerNorm) else None
    if final is None and not isinstance(final_norm, nn.Identity):
        return None
    found = [_layer(layer, kind.epsilon, packed) for layer in layers]
    made = [layer for layer in found if layer is not None]
    if len(made) != len(found):
        return None
    return decoder_step.DecoderWeights(made, final, kind.heads, kind.before, kind.activation, kind.epsilon, kind.scale)


class _Kind(NamedTuple):
    heads: int
    before: bool
    activation: Activation
    epsilon: float
    scale: float
    hidden: int


def _kind(layer: TransformerDecoderLayer) -> _Kind | None:
    around = (layer.around_self, layer.around_cross, layer.around_feed_forward)
    scales = {_scale(layer.self_attention), _scale(layer.cross_attention)}
    places = {(each.before, each.norm.eps) for each in around}
    inner = layer.feed_forward
    if type(layer) is not TransformerDecoderLayer or type(inner) is not FeedForward:
        return None
    if len(scales) != 1 or None in scales or len(places) != 1:
        return None
    before, epsilon = places.pop()
    scale = scales.pop()
    assert scale is not None
    activation: Activation = "relu" if inner.activation is F.relu else "gelu"
    return _Kind(layer.self_attention.num_heads, before, activation, epsilon, scale, inner.hidden_proj.out_features)


def _scale(heads: MultiHead) -> float | None:
    """The factor of the inner products, if that is what the heads softmax over; else None."""
    attention = heads.attention
    if type(heads) is not MultiHead or type(attention) is not Attention:
        return None
    usual = attention.selection.plain_softmax and attention.aggregation.weighted_sum
    dims = {heads.query_dim, heads.key_dim, heads.value_dim, heads.output_proj.out_features}
    inner = {heads.query_proj.out_features, heads.value_proj.out_features}
    if not usual or heads.num_key_heads != heads.num_heads or len(dims | inner) != 1:
        return None
    return attention.score.inner_product_scale(heads.query_dim // heads.num_heads)


def _layer(layer: TransformerDecoderLayer, epsilon: float, packed: PackedLayers) -> Layer | None:
    own, across, inner = layer.self_attention, layer.cross_attention, layer.feed_forward
    linears = [own.query_proj, own.key_proj, own.value_proj, own.output_proj, across.query_proj, across.output_proj]
    parts = [packed.of(linear) for linear in (*linears, inner.hidden_proj, inner.output_proj)]
    norms = [_norm(each.norm, epsilon) for each in (layer.around_self, layer.around_cross, layer.around_feed_forward)]
    if any(part is None for part in (*parts, *norms)):
        return None
    return Layer(*parts, tuple(norms))  # type: ignore[arg-type, call-arg]


def _norm(norm: nn.LayerNorm, epsilon: float) -> Norm | None:
    parts = (norm.weight, norm.bias)
    usual = type(norm) is nn.LayerNorm and norm.eps == epsilon
    if not usual or any(part is None or part.dtype is not torch.float32 or not part.is_contiguous() for part in parts):
        return None
    return Norm(norm.weight.detach(), norm.bias.detach())
