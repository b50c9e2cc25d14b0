"""What a program must know of a run besides its graphs, as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from saccade.export.graphs import Graph
from saccade.fields import Field, Text, WordPieces
from saccade.models.base import EncoderDecoder
from saccade.runs import Run
from saccade.tasks import Classification, Generation, Rating
from saccade.tasks.generation.options import RANGES
from saccade.tasks.generation.sides import most_read
from saccade.tasks.limits import most_tokens


def describe(run: Run, graphs: Sequence[Graph]) -> dict[str, Any]:
    """The content of `model.json`: vocabularies, limits, labels, and the names of the graphs' tensors."""
    task, model = run.task, run.model
    about: dict[str, Any] = {
        "model": type(model).__name__,
        "graphs": {g.name: {"inputs": list(g.inputs), "outputs": g.outputs, "axes": g.axes} for g in graphs},
        "vocabularies": {role: vocabulary(field) for role, field in task.inputs.items()},
    }
    if isinstance(task, Generation):
        assert isinstance(model, EncoderDecoder)
        about["vocabularies"]["target"] = vocabulary(task.target)
        step = graphs[1]
        return about | {
            "task": "generation",
            "state": [name for name in step.inputs if name != "tokens"],
            "changed": [name.removeprefix("next_") for name in step.outputs if name.startswith("next_")],
            "reads": most_read(model, task._trained()),
            "lengths": {
                "longest": task.longest_target,
                "ratio": max(1.0, task.target_ratio) if isinstance(task.source, Text) else task.target_ratio,
                "most": RANGES["max_length"][1],
                "written": model.longest_target(),
            },
        }
    first = next(iter(task.inputs.values()))
    pieces = isinstance(first, WordPieces)
    attention = [name for name in graphs[0].outputs if name != "logits"]
    about |= {
        "attention": attention,
        "looks": graphs[0].looks,
        "first": graphs[0].first,
        "reads": first.max_length if isinstance(first, WordPieces) else most_tokens(model),
        "cut": first.cut if pieces and isinstance(first, WordPieces) else "end",
    }
    if isinstance(task, Rating):
        return about | {"task": "rating", "mean": task.number.mean, "deviation": task.number.deviation}
    assert isinstance(task, Classification)
    if task.form.name == "tags":
        about["looks"] = attention[-1] if attention else None
    return about | {"task": "classification", "form": task.form.name, "labels": task.label.names}


def vocabulary(field: Field) -> dict[str, Any]:
    """The tokeniser of a text as it saves itself."""
    assert isinstance(field, Text | WordPieces)
    saved: dict[str, Any] = json.loads(field.tokeniser.dumps())
    return saved
