"""Interventions: what a model computes when it attends differently.

The functions here make interventions for `saccade.record(model, change={path: intervention})`. Any function
`(weights, mask, steps) -> weights` is one; weights that sum to less than 1 read less.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional as F

from saccade.attention import Attention
from saccade.decoders.source_attentions import SourceAttentions
from saccade.interpretation.recording import Intervention, record
from saccade.layers import TransformerDecoderLayer
from saccade.multihead import MultiHead


def ablate_head(*heads: int) -> Intervention:
    """Heads, counted from 0, that read nothing."""

    def ablate(weights: Tensor, mask: Tensor, steps: range) -> Tensor:
        _check_within("head", heads, weights.shape[1], "heads")
        changed = weights.clone()
        changed[:, list(heads)] = 0.0
        return changed

    return ablate


def uniform() -> Intervention:
    """The same weight for every key that may be attended; each query keeps its total weight."""

    def flatten(weights: Tensor, mask: Tensor, steps: range) -> Tensor:
        return weights.sum(-1, keepdim=True) * mask / mask.sum(-1, keepdim=True).clamp(min=1)

    return flatten


def knock_out(positions: Sequence[int], *, rescale: bool = True) -> Intervention:
    """Keys, counted from 0, that no query attends.

    Args:
        positions: the keys; those beyond the end of a shorter call are ignored.
        rescale: scales the remaining weights to the total of before; otherwise the query reads less.
    """
    if any(position < 0 for position in positions):
        raise ValueError(f"positions count from 0, got {list(positions)}.")

    def knock(weights: Tensor, mask: Tensor, steps: range) -> Tensor:
        here = [position for position in positions if position < weights.shape[-1]]
        changed = weights.clone()
        changed[..., here] = 0.0
        return rescaled(changed, weights) if rescale else changed

    return knock


def use_weights(given: Tensor) -> Intervention:
    """Other weights in place of the model's own, such as those of another trace.

    Args:
        given: (batch, heads, queries, keys); a decoder that takes one step at a time uses the row of each step. A batch
            or number of heads of 1 is expanded.
    """
    if given.dim() != 4:
        raise ValueError(f"use_weights takes weights (batch, heads, queries, keys), got {tuple(given.shape)}.")

    def replace(weights: Tensor, mask: Tensor, steps: range) -> Tensor:
        rows = given[:, :, steps.start : steps.stop]
        fits = rows.shape[2:] == weights.shape[2:] and all(
            have in (1, want) for have, want in zip(rows.shape[:2], weights.shape[:2], strict=True)
        )
        if not fits:
            raise ValueError(
                f"use_weights: weights {tuple(given.shape)} do not fit queries {steps.start} to {steps.stop - 1} of a "
                f"call with weights {tuple(weights.shape)}."
            )
        return rows.to(weights).expand_as(weights)

    return replace


def rescaled(changed: Tensor, weights: Tensor) -> Tensor:
    """Changed weights, scaled so that each query has the total of `weights`; zeros stay zeros."""
    total = changed.sum(dim=-1, keepdim=True)
    return changed * (weights.sum(dim=-1, keepdim=True) / total.where(total > 0, 1))


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


def _check_within(name: str, given: Sequence[int], count: int, several: str) -> None:
    wrong = [number for number in given if not 0 <= number < count]
    if wrong:
        raise ValueError(f"{name} {wrong[0]} does not exist: there are {count} {several}, 0 to {count - 1}.")
