"""The two graphs of a model that writes texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from saccade.data.special import BOS
from saccade.export.graphs import Graph, Make, axes_between, axis_names
from saccade.export.states import plain_values, tensors_of, with_tensors
from saccade.kernels.modes import plainly
from saccade.models.base import EncoderDecoder, LanguageModel
from saccade.models.language_model import Beginnings


class Start(nn.Module):
    """Encodes a source and takes the first step of a search, after which the state has its final form."""

    def __init__(self, model: EncoderDecoder, network: nn.Module | None = None) -> None:
        super().__init__()
        self.model = model
        self.network = network

    def first(self, source: Tensor, mask: Tensor) -> tuple[Any, Any]:
        """The mask of the encoded source, and the first step."""
        encoded = self.model.encode(source if self.network is None else self.network(source), mask)
        tokens = torch.full((mask.shape[0],), BOS, dtype=torch.long, device=mask.device)
        return encoded.mask, self.model.step(tokens, self.model.begin(encoded))

    def forward(self, source: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        mask, step = self.first(source, mask)
        weights = () if step.weights is None else (step.weights,)
        return (log_probs(step), *weights, mask.clone(), *tensors_of(step.state).values())


class Opening(nn.Module):
    """The first step of a language model, after the tokens that texts begin with."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.model = model

    def first(self, tokens: Tensor) -> tuple[Any, Any]:
        mask = tokens.new_ones(tokens.shape[0], 1).bool()
        return mask, self.model.step(tokens, self.model.begin(Beginnings(mask[:, :0])))

    def forward(self, tokens: Tensor) -> tuple[Tensor, ...]:
        mask, step = self.first(tokens)
        return (log_probs(step), mask, *tensors_of(step.state).values())


def log_probs(step: Any) -> Tensor:
    """(batch, tokens): what a search adds up, so that the program around the graphs need not compute it."""
    found: Tensor = step.logits.float().log_softmax(-1)
    return found


class Step(nn.Module):
    """One more step of a search; what it leaves unchanged is not among the outputs."""

    def __init__(self, model: EncoderDecoder | LanguageModel, state: Any, changed: Sequence[str]) -> None:
        super().__init__()
        self.model = model
        self.state = state
        self.changed = changed

    def forward(self, tokens: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        step = self.model.step(tokens, with_tensors(self.state, state))
        after = tensors_of(step.state)
        weights = () if step.weights is None else (step.weights,)
        return (log_probs(step), *weights, *(after[name] for name in self.changed))


def writing_graphs(model: EncoderDecoder, make: Make, network: nn.Module | None = None) -> list[Graph]:
    """The encoder with the first step, and the decoder's later steps.

    Args:
        model: in evaluation mode.
        make: source and mask.
        network: what turns the source into what the model reads.
    """
    return _both(Start(model, network), model, make(3, 7), make(5, 11))


def continuing_graphs(model: LanguageModel) -> list[Graph]:
    """The first step of a language model, named as an encoder is, and its later steps."""
    return _both(Opening(model), model, *({"tokens": torch.full((batch,), BOS)} for batch in (3, 5)))


@torch.no_grad()
@plainly()
def _both(
    start: Any, model: EncoderDecoder | LanguageModel, given: dict[str, Tensor], varied: dict[str, Tensor]
) -> list[Graph]:
    one, other = start.first(*given.values())[1], start.first(*varied.values())[1]
    tokens = torch.full((3,), BOS)
    two = model.step(tokens, one.state)
    three = model.step(tokens, two.state)
    forms = [(plain_values(step.state), list(tensors_of(step.state))) for step in (one, other, two)]
    if forms[0] != forms[1] or forms[0] != forms[2]:
        raise ValueError(f"{type(model).__name__} cannot be exported: the form of its state depends on the input.")
    before, after = tensors_of(two.state), tensors_of(three.state)
    changed = [name for name in before if before[name] is not after[name]]
    looked = [] if one.weights is None else ["weights"]
    names = axis_names(given, varied)
    state_axes = axes_between(tensors_of(one.state), tensors_of(other.state), names)
    for name, grown in axes_between(before, after, {(2, 3): "past"}).items():
        state_axes[name] = {**state_axes.get(name, {}), **grown}
    encoder = Graph(
        "encoder", start, given, ["log_probs", *looked, "mask", *before], axes_between(given, varied, names)
    )
    decoder = Graph(
        "decoder",
        Step(model, two.state, changed),
        {"tokens": tokens, **before},
        ["log_probs", *looked, *(f"next_{name}" for name in changed)],
        {"tokens": {0: "batch"}, **state_axes},
    )
    return [encoder, decoder]
