"""The graphs of a run."""

from __future__ import annotations

from typing import Any

from saccade.export.graphs import TracedGraph
from saccade.export.whole import whole_graph
from saccade.export.writers import continuing_graphs, writing_graphs
from saccade.models.base import EncoderDecoder, LanguageModel
from saccade.runs import Run


def graphs_of(run: Run) -> list[TracedGraph]:
    """Encoder and decoder of a model that generates text; the whole of any other; all of these for a language model."""
    task, model = run.task, run.model.eval()
    networks = [field.network() for field in task.inputs.values()]

    if isinstance(model, EncoderDecoder):
        return writing_graphs(model, task.stand_ins, networks)
    fixed = next(iter(task.inputs.values())).fixed()
    over: Any = getattr(model, "over", None)
    whole = whole_graph(task, model if over is None else over(**fixed), task.stand_ins, networks[0])
    if isinstance(model, LanguageModel) and task.portable(model).get("causal"):
        return [whole, *continuing_graphs(model)]
    return [whole]
