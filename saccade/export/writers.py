"""The two graphs of a model that generates text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from saccade.data.special import BOS
from saccade.decoders import Step
from saccade.encoders import EncodedSources, JoinedSources
from saccade.export.graphs import Make, TracedGraph, axes_between, axis_names
from saccade.export.states import plain_values, tensors_of, with_tensors
from saccade.kernels.modes import plainly
from saccade.models.base import EncoderDecoder, LanguageModel
from saccade.models.language_model import Beginnings


class StartGraph(nn.Module):
    """Encodes sources and takes the first step of a search, after which the state has its final form.

    Args:
        model: in evaluation mode.
        networks: for each source, what turns its values into what the model reads.
    """

    def __init__(self, model: EncoderDecoder, networks: Sequence[nn.Module | None]) -> None:
        super().__init__()
        self.model = model
        self.networks = nn.ModuleList([network or nn.Identity() for network in networks])

    def first(self, *given: Tensor) -> tuple[dict[str, Tensor], Step]:
        """What a search needs to know about the encoded sources, and the first step.

        That is the mask of all positions; with several sources, which source each position belongs to: see `Layout`;
        and with several ways to say a word, what the entries of each say, which is the same at all steps. A model that
        copies is also given the words of its source, last.
        """
        words = {"words": given[-1]} if self.model.head.copies else {}
        given = given[: 2 * len(self.networks)]
        values = [network(each) for network, each in zip(self.networks, given[::2], strict=True)]
        masks = given[1::2]
        if len(masks) > 1:  # of a picture that is missing, a network makes something all the same
            values = [
                each if isinstance(network, nn.Identity) else each * mask.unsqueeze(-1)
                for network, each, mask in zip(self.networks, values, masks, strict=True)
            ]
        encoded = self.model.encode(*(each for pair in zip(values, masks, strict=True) for each in pair), **words)
        tokens = torch.full((masks[0].shape[0],), BOS, dtype=torch.long, device=masks[0].device)
        known = {"mask": encoded.mask}
        if isinstance(encoded, JoinedSources | EncodedSources):
            owner, place, real = encoded.layout
            known |= {"owner": owner, "place": place, "lengths": torch.stack([each.sum(1) for each in real], dim=1)}
        step = self.model.step(tokens, self.model.begin(encoded))
        known |= {f"{way}_words": entries.words for way, entries in step.shares().items()}
        return known, step

    def forward(self, *given: Tensor) -> tuple[Tensor, ...]:
        known, step = self.first(*given)
        shown = [tensor.clone() for tensor in known.values()]  # an output must not be an input, nor part of the state
        return (*outputs(self.model, step).values(), *shown, *tensors_of(step.state).values())


class Opening(nn.Module):
    """The first step of a language model, after the tokens that texts begin with."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.model = model

    def first(self, tokens: Tensor) -> tuple[dict[str, Tensor], Step]:
        mask = tokens.new_ones(tokens.shape[0], 1).bool()
        return {"mask": mask}, self.model.step(tokens, self.model.begin(Beginnings(mask[:, :0])))

    def forward(self, tokens: Tensor) -> tuple[Tensor, ...]:
        known, step = self.first(tokens)
        return (*outputs(self.model, step).values(), *known.values(), *tensors_of(step.state).values())


def outputs(model: nn.Module, step: Step) -> dict[str, Tensor]:
    """What a step gives by name, each (batch, ...).

    The log-probabilities of all tokens are what a search adds up; then come the weights, if there are any, and where a
    text has a source, the log-probabilities of the entries of each way to say a word other than generating it.
    """
    found = {"log_probs": step.log_probs()}
    found |= {} if step.weights is None else {"weights": step.weights}
    ways = step.shares() if isinstance(model, EncoderDecoder) else {}
    return found | {f"{way}_log_probs": entries.scores for way, entries in ways.items()}


class StepGraph(nn.Module):
    """One more step of a search; what it leaves unchanged is not among the outputs."""

    def __init__(self, model: EncoderDecoder | LanguageModel, state: Any, changed: Sequence[str]) -> None:
        super().__init__()
        self.model = model
        self.state = state
        self.changed = changed

    def forward(self, tokens: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        step = self.model.step(tokens, with_tensors(self.state, state))
        after = tensors_of(step.state)
        return (*outputs(self.model, step).values(), *(after[name] for name in self.changed))


def writing_graphs(model: EncoderDecoder, make: Make, networks: Sequence[nn.Module | None]) -> list[TracedGraph]:
    """The encoder with the first step, and the decoder's later steps.

    Args:
        model: in evaluation mode.
        make: values and mask of each source, and for a model that copies the words of its source.
        networks: for each source, what turns its values into what the model reads.
    """
    return _both(StartGraph(model, networks), model, make(3, 7), make(5, 11))


def continuing_graphs(model: LanguageModel) -> list[TracedGraph]:
    """The first step of a language model, named as an encoder is, and its later steps."""
    return _both(Opening(model), model, *({"tokens": torch.full((batch,), BOS)} for batch in (3, 5)))


@torch.no_grad()
@plainly()
def _both(
    start: Any, model: EncoderDecoder | LanguageModel, given: dict[str, Tensor], varied: dict[str, Tensor]
) -> list[TracedGraph]:
    (known, one), (_, other) = start.first(*given.values()), start.first(*varied.values())
    tokens = torch.full((3,), BOS)
    two = model.step(tokens, one.state)
    three = model.step(tokens, two.state)
    forms = [(plain_values(step.state), list(tensors_of(step.state))) for step in (one, other, two)]
    if forms[0] != forms[1] or forms[0] != forms[2]:
        raise ValueError(f"{type(model).__name__} cannot be exported: the structure of its state depends on the input.")
    before, after = tensors_of(two.state), tensors_of(three.state)
    changed = [name for name in before if before[name] is not after[name]]
    given_out = list(outputs(model, one))
    names = axis_names(given, varied)
    state_axes = axes_between(tensors_of(one.state), tensors_of(other.state), names)
    for name, grown in axes_between(before, after, {(2, 3): "past"}).items():
        state_axes[name] = {**state_axes.get(name, {}), **grown}
    encoder = TracedGraph("encoder", start, given, [*given_out, *known, *before], axes_between(given, varied, names))
    decoder = TracedGraph(
        "decoder",
        StepGraph(model, two.state, changed),
        {"tokens": tokens, **{name: each.clone() for name, each in before.items()}},  # views would be looked into
        [*given_out, *(f"next_{name}" for name in changed)],
        {"tokens": {0: "batch"}, **state_axes},
    )
    return [encoder, decoder]
