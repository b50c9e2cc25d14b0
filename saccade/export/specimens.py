"""Inputs that a model is traced with: made up, but of the form that its fields give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from saccade.data.special import EOS, NAMES
from saccade.fields import Field, Text, WordPieces
from saccade.tasks import Task


def specimen(field: Field, length: int) -> Any:
    """An encoded value of a field with so many positions."""
    if isinstance(field, Text):
        size = field.tokeniser.size
        return [len(NAMES) % size + n % max(1, size - len(NAMES)) for n in range(length - 1)] + [EOS]
    if isinstance(field, WordPieces):
        words = [n % field.tokeniser.size for n in range(length - 3)]
        half = len(words) // 2
        made = field.assemble(words[:half], words[half:])
        return {**made, "ids": made["ids"][:length]}
    raise TypeError(f"There is no specimen of the field {type(field).__name__}.")


def batch_of(task: Task, batch: int, length: int) -> dict[str, Tensor]:
    """The tensors that a model reads, by name: so many examples, the longest of so many positions.

    Later inputs are longer than the first, so that no two axes have the same size by chance.
    """
    fields = task.inputs
    rows: Sequence[dict[str, Any]] = [
        {role: specimen(field, length + 2 * n - min(number, 2)) for n, (role, field) in enumerate(fields.items())}
        for number in range(batch)
    ]
    found: dict[str, Tensor] = {}
    for role, field in fields.items():
        padded = field.pad([row[role] for row in rows])
        found |= {role if name == "values" else f"{role}_{name}": tensor for name, tensor in padded.items()}
    return found
