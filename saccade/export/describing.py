"""What a program needs besides the graphs of a run, as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from saccade.export.graphs import TracedGraph
from saccade.runs import Run


def describe(run: Run, graphs: Sequence[TracedGraph]) -> dict[str, Any]:
    """The content of `model.json`: how inputs are read and answers are made, and the tensors of the graphs by name."""
    task = run.task
    looking = graphs[0].looking
    step = next((graph for graph in graphs if graph.name == "decoder"), None)
    about: dict[str, Any] = {
        "model": type(run.model).__name__,
        "graphs": {g.name: {"inputs": list(g.inputs), "outputs": g.outputs, "axes": g.axes} for g in graphs},
        "inputs": {role: field.portable() for role, field in task.inputs.items()},
        "task": task.portable(run.model),
        "looks": None if looking is None else {"keys": looking.keys, "queries": looking.queries},
    }
    if step is not None:
        about["state"] = [name for name in step.inputs if name != "tokens"]
        about["changed"] = [name.removeprefix("next_") for name in step.outputs if name.startswith("next_")]
        about["ways"] = [name.removesuffix("_log_probs") for name in step.outputs if name.endswith("_log_probs")]
    return about
