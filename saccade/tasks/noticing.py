"""Warnings about inputs that were answered anyway."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch import nn

from saccade.tasks.answers import Answer
from saccade.tasks.base import Task
from saccade.tasks.data import Example

SHOWN = 8
"""How many parts of inputs are shown."""

LONGEST = 60
"""How many characters of each."""


def warnings_about(
    task: Task, model: nn.Module, examples: Sequence[Example], answers: Sequence[Answer]
) -> dict[int, list[str]]:
    """Sentences about inputs that are empty, too long, or have unknown parts, by the number of the input."""
    found: dict[int, list[str]] = {}
    if task.empty_answer() is not None:
        empty = (number for number, example in enumerate(examples) if task.is_empty(example))
        found = {number: ["The input is empty, so its answer is empty too."] for number in empty}
    for number, left in task.truncated(model, examples).items():
        found.setdefault(number, []).append(f"The input has {left}.")
    for number, parts in task.unknown(examples, answers).items():
        found.setdefault(number, []).append(f"The input has {never_seen(parts)}")
    return found


def never_seen(parts: Iterable[str]) -> str:
    """Names parts that do not occur in the training data, each once."""
    different = list(dict.fromkeys(parts))
    shown = ", ".join(f"{part!r:.{LONGEST}}" for part in different[:SHOWN])
    return f"parts that the model has never seen and reads as unknown: {shown}{', ...' * (len(different) > SHOWN)}"
