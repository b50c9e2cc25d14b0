"""Labels: one of several classes, some of them, or a place on a scale."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from saccade.artifacts import Document, read_json
from saccade.data.cell import Cell, text_of
from saccade.data.errors import DataError
from saccade.fields.base import Field, Padded, fields
from saccade.registry import nearest

FILE = "labels.json"
MOST = 100_000
"""Labels that a file may name: more is a column of another kind."""


@fields.register("label")
class Label(Field):
    """One of several classes, by name. The classes are those of the training data, unless they are given.

    Args:
        names: the classes. With `ordered`, from lowest to highest.
        ordered: whether the classes are grades of one scale, such as stars: being off by one is then better than being
            off by three. Names that are not given are sorted as numbers, which they must be.
    """

    def __init__(self, *, names: list[str] | None = None, ordered: bool = False) -> None:
        if names is not None and len(set(names)) != len(names):
            raise ValueError(f"names must differ, got {names}.")
        if names is not None and len(names) < 2:
            raise ValueError(f"names must hold two classes or more, got {names}.")
        self.given = names
        self.ordered = ordered
        self.names = list(names or ())
        self._places: dict[str, int] = {}
        self.counts: Counter[str] = Counter()

    def read(self, raw: Any, cell: Cell) -> str:
        if isinstance(raw, bool):
            raw = str(raw).lower()
        if isinstance(raw, float) and raw.is_integer():
            raw = int(raw)  # a column of whole numbers with gaps is read as floats
        name = text_of(raw, cell).strip()
        self._check(name, cell)
        return name

    def fit(self, values: Iterable[str]) -> None:
        self._learn(Counter(values))

    def _learn(self, counts: Counter[str]) -> None:
        self.counts = counts
        if self.given is None:
            if self.ordered:
                wrong = next((name for name in counts if not _is_number(name)), None)
                if wrong is not None:
                    raise ValueError(
                        f"ordered labels are sorted as numbers, but {wrong!r} is not a number: give names."
                    )
                self.names = sorted(counts, key=float)
            else:
                self.names = sorted(counts)
        if len(self.names) < 2:
            raise ValueError(f"There must be two labels or more to tell apart, got {', '.join(self.names) or 'none'}.")
        if len(self.names) > MOST:
            raise ValueError(f"{len(self.names):,} different labels are too many: is that the right column?")

    def sizes(self) -> dict[str, int]:
        return {"classes": len(self.names) or 3}

    def save(self, folder: Path) -> None:
        content = {"names": self.names, "counts": [self.counts[name] for name in self.names]}
        (folder / FILE).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")

    def load(self, folder: Path) -> None:
        found = Document(read_json(folder / FILE), str(folder / FILE))
        names = found.take_list("names", str)
        if not 2 <= len(names) <= MOST or len(set(names)) != len(names):
            raise found.wrong("names", f"is not a list of 2 to {MOST:,} different texts")
        counts = found.take_list("counts", int, length=len(names), least=0)
        self.names, self.counts = names, Counter(dict(zip(names, counts, strict=True)))

    def encode(self, value: str) -> int:
        return self._number(value)

    def pad(self, encoded: Sequence[int], generator: torch.Generator | None = None) -> Padded:
        return {"values": torch.tensor(list(encoded), dtype=torch.long)}

    def learned(self) -> str:
        shown = [f"{name} ({self.counts[name]:,})" for name in self.names[:6]]
        return f"{len(self.names)} classes: {', '.join(shown)}{', ...' if len(self.names) > 6 else ''}"

    def warnings(self, examples: int) -> list[str]:
        if len(self.names) > max(50, examples // 2):
            return [f"{len(self.names):,} different labels in {examples:,} examples: is that the right column?"]
        rare = [name for name in self.names if self.counts[name] == 0]
        return [f"No training example has the label {', '.join(map(repr, rare[:5]))}."] if rare else []

    def _number(self, name: str) -> int:
        number = self._numbers().get(name)
        if number is None:
            raise DataError(f"no training example has the label {name!r:.60}.")
        return number

    def _numbers(self) -> dict[str, int]:
        if len(self._places) != len(self.names):  # which are learned once
            self._places = {name: number for number, name in enumerate(self.names)}
        return self._places

    def _check(self, name: str, cell: Cell) -> None:
        if self.names and name not in self._numbers():
            fix = "Correct it, or leave such rows out with --data.bad_rows skip."
            raise cell.bad(
                f"the {cell.role} {name!r:.60} is not one the model knows", f"{nearest(name, self.names).strip()} {fix}"
            )


@fields.register("labels")
class Labels(Label):
    """Any number of classes at once, such as the topics of a text: a list, or names with a separator between them.

    Args:
        names: the classes; by default those of the training data.
        separator: between the names, where a cell holds text.
    """

    def __init__(self, *, names: list[str] | None = None, separator: str = ",") -> None:
        super().__init__(names=names)
        if not separator:
            raise ValueError("separator must not be empty.")
        self.separator = separator

    def read(self, raw: Any, cell: Cell) -> list[str]:  # type: ignore[override] # several labels are its values
        if raw is None:
            return []
        parts = raw if isinstance(raw, list | tuple) else text_of(raw, cell, may_be_empty=True).split(self.separator)
        names = [text_of(part, cell, may_be_empty=True).strip() for part in parts]
        found = sorted({name for name in names if name})
        for name in found:
            self._check(name, cell)
        return found

    def fit(self, values: Iterable[list[str]]) -> None:  # type: ignore[override]
        self._learn(Counter(name for several in values for name in several))

    def encode(self, value: list[str]) -> list[int]:  # type: ignore[override]
        return [self._number(name) for name in value]

    def size(self, encoded: Any) -> int:
        return 1

    def pad(self, encoded: Sequence[Sequence[int]], generator: torch.Generator | None = None) -> Padded:  # type: ignore[override]
        chosen = torch.zeros(len(encoded), len(self.names))
        for row, numbers in enumerate(encoded):
            chosen[row, list(numbers)] = 1.0
        return {"values": chosen}

    def show(self, value: Sequence[str]) -> str:
        return f"{self.separator} ".join(value) if self.separator == "," else self.separator.join(value)


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True
