"""Names of users, items and the like."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from saccade.artifacts import ArtifactError, read_json
from saccade.data.cell import Cell, text_of
from saccade.fields.base import Field, Padded, fields

FILE = "names.json"

UNKNOWN = 0
"""The number shared by all names that do not occur in the training data."""


@fields.register("identity")
class Identity(Field):
    """A name, such as that of a user or a product; known names are numbered from 1.

    All names that do not occur in the training data share the number 0. What that means is up to the model.
    """

    unit = "names"

    def __init__(self) -> None:
        self._use([])

    def _use(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self._numbers = {name: number for number, name in enumerate(self.names, start=1)}

    def read(self, raw: Any, cell: Cell) -> str:
        return text_of(int(raw) if isinstance(raw, float) and raw.is_integer() else raw, cell).strip()

    def fit(self, values: Iterable[str]) -> None:
        self._use(sorted(set(values)))

    def sizes(self) -> dict[str, int]:
        return {"names": 1 + len(self.names) if self.names else 5}

    def save(self, folder: Path) -> None:
        (folder / FILE).write_text(json.dumps(self.names, ensure_ascii=False), encoding="utf-8")

    def load(self, folder: Path) -> None:
        found = read_json(folder / FILE)
        if not isinstance(found, list) or not found or not all(isinstance(name, str) for name in found):
            raise ArtifactError(f"{folder / FILE} is damaged: it must contain a list of names.")
        if len(set(found)) < len(found):
            raise ArtifactError(f"{folder / FILE} is damaged: a name appears twice.")
        self._use(found)

    def encode(self, value: str) -> int:
        return self._numbers.get(value, UNKNOWN)

    def size(self, encoded: int) -> int:
        return 1

    def pad(self, encoded: Sequence[int], generator: torch.Generator | None = None) -> Padded:
        return {"values": torch.tensor(list(encoded), dtype=torch.long)}

    def portable(self) -> dict[str, Any]:
        return {"kind": "identity", "names": self.names}

    def learned(self) -> str:
        return f"{len(self.names):,} different names"

    def unknown(self, value: str) -> list[str]:
        return [] if value in self._numbers else [value]
