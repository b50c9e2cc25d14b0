"""Inputs as vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from saccade.fields import WordPieces
from saccade.models.base import TextEncoder
from saccade.tasks.base import Task


def vectors_of(task: Task, model: nn.Module, inputs: Sequence[Any]) -> Tensor:
    """(inputs, dim): each input as the vector that the model computes before its answer.

    Args:
        task: with one input, which is split into word pieces.
        model: a `TextEncoder`.
        inputs: examples, or plain values.
    """
    role, field = next(iter(task.inputs.items()))
    if not isinstance(model, TextEncoder) or not isinstance(field, WordPieces):
        raise ValueError(f"{type(model).__name__} does not represent its inputs by vectors; bert does.")
    rows = [task.prepare(model, task.example(value))[role] for value in inputs]
    return model.vectors([row["ids"] for row in rows], [row["first"] for row in rows])
