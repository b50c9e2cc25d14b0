"""The two graphs of a model that writes texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from saccade.data.special import BOS
from saccade.export.graphs import Graph, axes_between
from saccade.export.states import plain_values, tensors_of, with_tensors
from saccade.kernels.modes import plainly
from saccade.models.base import EncoderDecoder


class Start(nn.Module):
    """Encodes a source and takes the first step of a search, after which the state has its final form."""

    def __init__(self, model: EncoderDecoder) -> None:
        super().__init__()
        self.model = model

    def first(self, source: Tensor, mask: Tensor) -> tuple[Any, Any]:
        """The encoded source and the first step."""
        encoded = self.model.encode(source, mask)
        tokens = torch.full((mask.shape[0],), BOS, dtype=torch.long, device=mask.device)
        return encoded, self.model.step(tokens, self.model.begin(encoded))

    def forward(self, source: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        encoded, step = self.first(source, mask)
        weights = () if step.weights is None else (step.weights,)
        return (step.logits, *weights, encoded.mask.clone(), *tensors_of(step.state).values())


class Step(nn.Module):
    """One more step of a search; what it leaves unchanged is not among the outputs."""

    def __init__(self, model: EncoderDecoder, state: Any, changed: Sequence[str]) -> None:
        super().__init__()
        self.model = model
        self.state = state
        self.changed = changed

    def forward(self, tokens: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        step = self.model.step(tokens, with_tensors(self.state, state))
        after = tensors_of(step.state)
        weights = () if step.weights is None else (step.weights,)
        return (step.logits, *weights, *(after[name] for name in self.changed))


@torch.no_grad()
@plainly()
def writing_graphs(model: EncoderDecoder, make: Callable[[int, int], Sequence[Tensor]]) -> list[Graph]:
    """The encoder with the first step, and the decoder's later steps.

    Args:
        model: in evaluation mode.
        make: source and mask of so many examples, of at most so many positions.
    """
    start, names = Start(model), ["source", "source_mask"]
    small, big = make(3, 7), make(5, 11)
    given = dict(zip(names, small, strict=True))
    one, other = start.first(*small)[1], start.first(*big)[1]
    tokens = torch.full((3,), BOS)
    two = model.step(tokens, one.state)
    three = model.step(tokens, two.state)
    forms = [(plain_values(step.state), list(tensors_of(step.state))) for step in (one, other, two)]
    if forms[0] != forms[1] or forms[0] != forms[2]:
        raise ValueError(f"{type(model).__name__} cannot be exported: the form of its state depends on the input.")
    before, after = tensors_of(two.state), tensors_of(three.state)
    changed = [name for name in before if before[name] is not after[name]]
    looked = [] if one.weights is None else ["weights"]
    sizes = {(3, 5): "batch", (7, 11): "length"}
    state_axes = axes_between(tensors_of(one.state), tensors_of(other.state), sizes)
    for name, grown in axes_between(before, after, {(2, 3): "past"}).items():
        state_axes[name] = {**state_axes.get(name, {}), **grown}
    encoder = Graph(
        "encoder",
        start,
        given,
        ["logits", *looked, "mask", *before],
        axes_between(given, dict(zip(names, big, strict=True)), sizes),
    )
    decoder = Graph(
        "decoder",
        Step(model, two.state, changed),
        {"tokens": tokens, **before},
        ["logits", *looked, *(f"next_{name}" for name in changed)],
        {"tokens": {0: "batch"}, **state_axes},
    )
    return [encoder, decoder]
