"""Interventions: what a Saccade model would have said, had it looked elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.attention import Attention
from saccade.distributions import Categorical, Distribution
from saccade.layers import TransformerDecoderLayer
from saccade.selections import Selection

Change = Callable[[Tensor, Tensor, range], Tensor]
"""Weights (*batch, queries, keys), the mask in that shape, and which steps the queries are -> other weights."""


def source_attentions(model: nn.Module) -> dict[str, Attention]:
    """A model's attentions to the source, by their place in it, in the order of the layers; none without attention."""
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
    return {f"decoder.{name}": part for name, part in decoder.named_modules() if isinstance(part, Attention)}


@contextmanager
def changed_attention(attentions: Iterable[Attention], change: Change) -> Iterator[None]:
    """Within it, attentions read with the weights that `change` makes of theirs, at every step of every forward pass.

    What is not a distribution any more is read as it is: weights that sum to less than 1 read less. Steps are counted
    from 0 from the entry on, also by decoders that take one at a time. If the given weights are returned themselves,
    nothing changes: so they can be watched. Fused paths, which have no weights, are left for the plain ones.

    Args:
        attentions: those of `source_attentions(model).values()`, for example.
        change: called with the weights of each reading.
    """
    several = list(attentions)
    own = [attention.selection for attention in several]
    try:
        for attention in several:
            attention.selection = _Changing(attention.selection, change)
        yield
    finally:
        for attention, selection in zip(several, own, strict=True):
            attention.selection = selection


def attention_maps(model: nn.Module, source: Tensor, source_mask: Tensor, target_in: Tensor) -> dict[str, Tensor]:
    """Every head's attention to the source under teacher forcing, by the attention's place in the model.

    A decoder that aligns without an `Attention` has one map, that of the weights it reports; one that does neither has
    none.

    Shapes:
        source (batch, length), source_mask bool (batch, length), target_in (batch, steps), the start token first
        -> for each attention (batch, heads, steps, length).
    """
    attentions = source_attentions(model)
    seen: dict[str, list[Tensor]] = {name: [] for name in attentions}

    def watch(name: str) -> Change:
        def keep(weights: Tensor, mask: Tensor, steps: range) -> Tensor:
            several = weights.unsqueeze(1) if weights.dim() == 3 else weights
            seen[name].append(F.pad(several, (0, source.shape[1] - several.shape[-1])))  # the last keys may be cut off
            return weights

        return keep

    with ExitStack() as watching:
        for name, attention in attentions.items():
            watching.enter_context(changed_attention([attention], watch(name)))
        decoded = model(source, source_mask, target_in)
    if not attentions and decoded.weights is not None:
        return {"decoder": decoded.weights.unsqueeze(1)}
    return {name: torch.cat(steps, dim=-2) for name, steps in seen.items() if steps}


@dataclass(frozen=True, eq=False)
class _Changed(Categorical):
    """Other weights than the selection's own, which it needs to go on from."""

    original: Distribution | None = None


class _Changing(Selection):
    """A selection whose weights are changed."""

    def __init__(self, selection: Selection, change: Change) -> None:
        super().__init__()
        self.selection = selection
        self.change = change
        self.stateful, self.stochastic = selection.stateful, selection.stochastic
        self.steps = 0

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Any:
        return self.selection.prepare(keys, mask=mask, start=start)

    def select(self, scores: Tensor, mask: Tensor, *, query: Tensor | None, prepared: Any, state: Any) -> Distribution:
        found = self.selection.select(scores, mask, query=query, prepared=prepared, state=state)
        weights = found.marginals
        steps = range(self.steps, self.steps + weights.shape[-2])
        self.steps = steps.stop
        changed = self.change(weights, mask, steps)
        if changed is weights:
            return found
        if type(found).coefficients is not Distribution.coefficients:
            raise TypeError(
                f"{type(self.selection).__name__} reads values through a basis, not by weights: there are no weights "
                "to change."
            )
        if changed.shape != weights.shape:
            raise ValueError(
                f"Changed weights must keep their shape {tuple(weights.shape)}, got {tuple(changed.shape)}."
            )
        return _Changed(changed, defective=True, training=found.training, original=found)

    def advance(self, state: Any, distribution: Distribution) -> Any:
        own = distribution.original if isinstance(distribution, _Changed) else distribution
        assert own is not None
        return self.selection.advance(state, own)
