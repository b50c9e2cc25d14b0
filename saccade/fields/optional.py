"""A field whose values may be missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from saccade.data.cell import Cell
from saccade.data.errors import DataError
from saccade.data.vectors import Vectors
from saccade.fields.base import Field, Padded
from saccade.interpretation.explorer import Axis, TextAxis

MISSING = "(missing)"
"""What is shown in place of a missing value."""


class OptionalField(Field):
    """Another field whose cells may be empty: the value is then None, and the mask all False.

    Args:
        field: what reads the other values.
        role: its name, for messages.
        column: whether the data must have a column for it, whose cells may be empty.
    """

    def __init__(self, field: Field, *, role: str, column: bool = False) -> None:
        self.inner, self.role = field, role
        self.optional = not column
        self.decodes, self.suffixes, self.unit = field.decodes, field.suffixes, field.unit
        self.repeats, self.paragraphs, self.holds = field.repeats, field.paragraphs, field.holds

    @property
    def vectors(self) -> Vectors | None:  # type: ignore[override]
        return self.inner.vectors

    @property
    def longest(self) -> int | None:
        return self.inner.longest

    def read(self, raw: Any, cell: Cell) -> Any:
        nothing = raw is None or (isinstance(raw, str) and not raw.strip())
        return None if nothing else self.inner.read(raw, cell)

    def check_columns(self, role: str, count: int) -> None:
        self.inner.check_columns(role, count)

    def fit(self, values: Iterable[Any]) -> None:
        present = (value for value in values if value is not None)
        first = next(present, None)
        if first is None:
            raise DataError(f"No training example has a {self.role}: check data.columns, or leave this source out.")
        self.inner.fit(chain([first], present))

    def adopt(self, folder: Path) -> bool:
        return self.inner.adopt(folder)

    def share(self, other: Field) -> None:
        self.inner.share(plain(other))

    def sizes(self) -> dict[str, int]:
        return self.inner.sizes()

    def identity(self, value: Any) -> Any:
        return None if value is None else self.inner.identity(value)

    def save(self, folder: Path) -> None:
        self.inner.save(folder)

    def load(self, folder: Path) -> None:
        self.inner.load(folder)

    def vocabulary(self) -> list[str]:
        return self.inner.vocabulary()

    def texts(self, encoded: Any) -> Iterable[Sequence[int]]:
        return () if encoded is None else self.inner.texts(encoded)

    def encode(self, value: Any) -> Any:
        return None if value is None else self.inner.encode(value)

    def size(self, encoded: Any) -> int:
        return 0 if encoded is None else self.inner.size(encoded)

    def left_out(self, encoded: Any) -> str | None:
        return None if encoded is None else self.inner.left_out(encoded)

    def truncated(self, encoded: Any) -> str | None:
        return None if encoded is None else self.inner.truncated(encoded)

    def clip(self, encoded: Any, most: int) -> Any:
        return None if encoded is None else self.inner.clip(encoded, most)

    def pad(self, encoded: Sequence[Any], generator: torch.Generator | None = None) -> Padded:
        present = [number for number, each in enumerate(encoded) if each is not None]
        padded = self.inner.pad([encoded[number] for number in present], generator) if present else self._nothing()
        if len(present) == len(encoded):
            return padded
        rows = torch.tensor(present, dtype=torch.long)
        return {
            name: tensor.new_zeros(len(encoded), *tensor.shape[1:]).index_copy(0, rows, tensor)
            for name, tensor in padded.items()
        }

    def _nothing(self) -> Padded:
        """A batch of no values, with one position."""
        dim = self.sizes().get("dim")
        values: Tensor = torch.zeros(0, 1, dtype=torch.long) if dim is None else torch.zeros(0, 1, dim)
        return {"values": values, "mask": torch.zeros(0, 1, dtype=torch.bool)}

    def axis(self, value: Any, length: int | None = None) -> Axis:
        return TextAxis(pieces=[MISSING]) if value is None else self.inner.axis(value, length)

    def position_names(self, value: Any, length: int | None = None) -> list[str]:
        return [] if value is None else self.inner.position_names(value, length)

    def words(self, value: Any, length: int | None = None) -> list[list[int]]:
        return [] if value is None else self.inner.words(value, length)

    def show(self, value: Any) -> str:
        return "" if value is None else self.inner.show(value)

    def learned(self) -> str:
        return self.inner.learned()

    def warnings(self, examples: int) -> list[str]:
        return self.inner.warnings(examples)

    def unknown(self, value: Any) -> list[str]:
        return [] if value is None else self.inner.unknown(value)

    def portable(self) -> dict[str, Any]:
        return {**self.inner.portable(), "optional": True}

    def network(self) -> nn.Module | None:
        return self.inner.network()

    def stand_ins(self, count: int, length: int) -> Padded:
        return self.inner.stand_ins(count, length)


def plain(field: Field) -> Field:
    """The underlying field, if values may be missing."""
    return field.inner if isinstance(field, OptionalField) else field
