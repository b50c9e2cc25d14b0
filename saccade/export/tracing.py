"""The graphs of a run."""

from __future__ import annotations

from saccade.export.graphs import Graph
from saccade.export.specimens import batch_of
from saccade.export.whole import whole_graph
from saccade.export.writers import writing_graphs
from saccade.models.base import EncoderDecoder
from saccade.runs import Run


def graphs_of(run: Run) -> list[Graph]:
    """Encoder and decoder of a model that writes texts; the whole of any other."""
    task, model = run.task, run.model.eval()
    if isinstance(model, EncoderDecoder):
        return writing_graphs(model, lambda batch, length: list(batch_of(task, batch, length).values()))
    return [whole_graph(model, lambda batch, length: batch_of(task, batch, length))]
