"""What an encoder-decoder attends to in its source."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from saccade.attention import Attention
from saccade.decoders.source_attentions import SourceAttentions
from saccade.interpretation.recording import record
from saccade.layers import TransformerDecoderLayer
from saccade.multihead import MultiHead


def source_attentions(model: nn.Module) -> dict[str, Attention]:
    """A model's attentions to the source by path, as `record` names them, in layer order; {} without attention."""
    across = {
        f"{name}.cross_attention": part.cross_attention.attention
        for name, part in model.named_modules()
        if isinstance(part, TransformerDecoderLayer)
    }
    if across:
        return across
    decoder = getattr(model, "decoder", None)
    if not isinstance(decoder, nn.Module):
        raise TypeError(f"{type(model).__name__} has no decoder: give an encoder-decoder of saccade.models.")
    found = dict(decoder.named_modules(prefix="decoder"))
    over_contexts = {id(part.second) for part in found.values() if isinstance(part, SourceAttentions)}
    return {
        path.removesuffix(".attention") if isinstance(found.get(path.rpartition(".")[0]), MultiHead) else path: part
        for path, part in found.items()
        if isinstance(part, Attention) and id(part) not in over_contexts
    }


def attention_maps(
    model: nn.Module, source: Tensor, source_mask: Tensor, target_in: Tensor, words: Tensor | None = None
) -> dict[str, Tensor]:
    """Every head's attention to the source under teacher forcing, by path, without gradients.

    A decoder that aligns without an `Attention` has one map, "decoder", of the weights that it reports; a decoder
    without either has none.

    Shapes:
        source (batch, length), source_mask bool (batch, length), target_in (batch, steps), the start token first,
        and for a model that copies words (batch, length) -> for each attention (batch, heads, steps, length).
    """
    paths = list(source_attentions(model))
    with record(model, keep=paths) as trace:
        decoded = model(source, source_mask, target_in, **({} if words is None else {"words": words}))
    if not paths and decoded.weights is not None:
        return {"decoder": decoded.weights.unsqueeze(1)}
    maps = {path: trace.joined(path) for path in paths if path in trace.paths}
    # Decoders may cut off keys at the end that are padding in the whole batch.
    return {path: F.pad(weights, (0, source.shape[1] - weights.shape[-1])) for path, weights in maps.items()}
