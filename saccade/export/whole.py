"""The one graph of a model that answers at once."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from saccade.export.graphs import Make, TracedGraph, axes_between, axis_names, exported_program
from saccade.fields.looking import Looking
from saccade.interpretation.recording import record
from saccade.models.base import LanguageModel
from saccade.tasks import Task


class Whole(nn.Module):
    """Logits, the attention that decides about the answers, and the weights of every attention as `record` sees it.

    `looks` is (batch, keys), or (batch, queries, keys) if each query is about something of its own; `picked`, of a
    model that reads only what it picks, is (batch, keys); other weights are (batch, heads, queries, keys).
    """

    outputs: list[str]
    """The names of what the last call returned."""

    def __init__(self, model: nn.Module, looking: Looking | None = None, network: nn.Module | None = None) -> None:
        super().__init__()
        self.model = model
        self.network = network
        self.looking = looking

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        values = inputs[0] if self.network is None else self.network(inputs[0])
        model = self.__dict__["_modules"]["model"]  # not a stand-in that torch.export makes, whose class is another
        with record(model) as trace:
            found = model(values, *inputs[1:])
        logits = self.model.head.logits(found) if isinstance(self.model, LanguageModel) else found
        named = {"logits": logits}
        if self.looking is not None:
            named["looks"] = self.looking.look.weights(trace, inputs[0].shape[0], inputs[0])
            picked = trace[self.looking.look.path].picked
            if picked is not None:
                named["picked"] = picked[:, 0, 0]
        named |= {"weights_" + re.sub(r"\W", "_", call.name): call.weights for call in trace.calls}
        self.outputs = list(named)
        return tuple(named.values())


@torch.no_grad()
def whole_graph(task: Task, model: nn.Module, make: Make, network: nn.Module | None = None) -> TracedGraph:
    """The model as one graph.

    Args:
        task: which decides what of the attention is an answer's own.
        model: in evaluation mode.
        make: its inputs.
        network: what turns the first input into what the model reads.
    """
    given, other = make(3, 7), make(5, 11)
    looking = None
    if not isinstance(model, LanguageModel):
        with record(model) as trace:
            model(*_read(list(given.values()), network))
        looking = task.looking(trace, given)
    module = Whole(model, looking, network)
    graph = TracedGraph("model", module, given, [], axes_between(given, other, axis_names(given, other)), looking)
    program = exported_program(graph)
    return dataclasses.replace(graph, outputs=module.outputs, program=program)


def _read(inputs: Sequence[Tensor], network: nn.Module | None) -> list[Tensor]:
    return list(inputs) if network is None else [network(inputs[0]), *inputs[1:]]
