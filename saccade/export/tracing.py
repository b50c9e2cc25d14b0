"""The graphs of a run."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from saccade.export.graphs import Graph
from saccade.export.whole import whole_graph
from saccade.export.writers import continuing_graphs, writing_graphs
from saccade.models.base import EncoderDecoder, LanguageModel
from saccade.runs import Run
from saccade.tasks import Task


def graphs_of(run: Run) -> list[Graph]:
    """Encoder and decoder of a model that writes texts; the whole of any other; of a language model both."""
    task, model = run.task, run.model.eval()
    networks = [field.network() for field in task.inputs.values()]

    def make(batch: int, length: int) -> dict[str, Tensor]:
        return stand_ins(task, batch, length)

    if isinstance(model, EncoderDecoder):
        return writing_graphs(model, make, networks)
    fixed = next(iter(task.inputs.values())).fixed()
    over: Any = getattr(model, "over", None)
    whole = whole_graph(task, model if over is None else over(**fixed), make, networks[0])
    if isinstance(model, LanguageModel) and task.portable(model).get("causal"):
        return [whole, *continuing_graphs(model)]
    return [whole]


def stand_ins(task: Task, batch: int, length: int) -> dict[str, Tensor]:
    """Made-up inputs of a model by name: so many examples, the longest of so many positions.

    Later inputs are longer than the first, so that no two axes have the same size by chance.
    """
    found: dict[str, Tensor] = {}
    for number, (role, field) in enumerate(task.inputs.items()):
        padded = field.stand_ins(batch, length + 2 * number)
        found |= {role if name == "values" else f"{role}_{name}": tensor for name, tensor in padded.items()}
    return found
