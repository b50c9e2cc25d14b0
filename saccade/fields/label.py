"""Labels: one of several classes, some of them, or a place on a scale."""

from __future__ import annotations

import json
import math
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from saccade.artifacts import JsonObject, read_json
from saccade.data.cell import Cell, text_of
from saccade.data.errors import LEAVE_OUT, DataError, one_line
from saccade.data.readers.likely import Kind
from saccade.fields.base import Field, Padded, fields
from saccade.registry import nearest

FILE = "labels.json"
SEPARATORS = ";|,/ "
"""Separators between the names of several labels."""
MISSING = ("nan", "none", "null", "na", "n/a")
"""How programs write missing values."""
MOST = 100_000
"""The maximum number of different labels: with more, it is probably the wrong column."""
LONGEST = 40
"""Characters of a label that a message shows."""


@fields.register("label")
class Label(Field):
    """One of several classes, by name. By default the classes are those of the training data.

    Args:
        names: the classes. With `ordered`, from lowest to highest.
        ordered: whether the classes are grades on a scale, such as stars, where being off by one is better than being
            off by three. Unless `names` gives the order, the classes must be numbers.
        positive: of two classes, the one to detect, such as a disease. Figures then refer to it: auprc, sensitivity,
            specificity and the calibration of its probability. It is the answer if its probability reaches the option
            `threshold`, 0.5 by default.
    """

    holds: Kind = "label"

    def __init__(self, *, names: list[str] | None = None, ordered: bool = False, positive: str | None = None) -> None:
        if names is not None and len(set(names)) != len(names):
            raise ValueError(f"names must differ, got {names}.")
        if names is not None and len(names) < 2:
            raise ValueError(f"names must have at least two classes, got {names}.")
        if positive is not None and (ordered or (names is not None and (len(names) != 2 or positive not in names))):
            raise ValueError(f"positive={positive!r} must be one of two classes, which are not ordered, got {names}.")
        self.given = names
        self.ordered = ordered
        self.positive = positive
        self.names = list(names or ())
        self._places: dict[str, int] = {}
        self.counts: Counter[str] = Counter()
        """How many training examples have each label."""
        self.examples = 0
        """How many training examples there are."""

    def read(self, raw: Any, cell: Cell) -> str:
        if isinstance(raw, bool):
            raw = str(raw).lower()
        if isinstance(raw, float) and raw.is_integer():
            raw = int(raw)  # a column of whole numbers with gaps is read as floats
        if isinstance(raw, list | tuple):
            fix = f"If an input can have several labels, use the field labels: --task.{cell.role} labels."
            raise cell.bad(f"the {cell.role} is a list, but one label is expected", fix)
        name = text_of(raw, cell).strip()
        self._check(name, cell)
        return name

    def fit(self, values: Iterable[str]) -> None:
        self._learn(Counter(values))

    def _learn(self, counts: Counter[str], examples: int | None = None) -> None:
        self.counts = counts
        self.examples = counts.total() if examples is None else examples
        if self.given is None:
            self.names = self._in_order(counts)
        if len(self.names) < 2:
            found = ", ".join(map(shortened, self.names)) or "none"
            raise ValueError(f"there must be at least two different labels, got {found}. Is that the right column?")
        if len(self.names) > MOST:
            raise ValueError(f"{len(self.names):,} different labels are too many: is that the right column?")
        if self.positive is not None and (len(self.names) != 2 or self.positive not in self.names):
            found = ", ".join(map(shortened, self.names[:6])) + (", ..." if len(self.names) > 6 else "")
            raise ValueError(f"positive={self.positive!r} must be one of two labels, got {found}.")

    def known_with(self, others: Iterable[str]) -> list[str]:
        """The names of its classes and of others, seen in another training, in order."""
        new = set(others).difference(self.names)
        if not new or self.given is not None:
            return [*self.names, *sorted(new)]
        return self._in_order([*self.names, *new])

    def _in_order(self, names: Iterable[str]) -> list[str]:
        if not self.ordered:
            return sorted(names)
        wrong = next((name for name in names if not _is_number(name)), None)
        if wrong is not None:
            raise ValueError(f"ordered labels are sorted as numbers, but {wrong!r} is not a number: give names.")
        return sorted(names, key=float)

    def sizes(self) -> dict[str, int]:
        return {"classes": len(self.names) or 3}

    def strata(self, value: str) -> Sequence[str]:
        return (value,)

    def save(self, folder: Path) -> None:
        counts = [self.counts[name] for name in self.names]
        content = {"names": self.names, "counts": counts, "examples": self.examples}
        (folder / FILE).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")

    def load(self, folder: Path) -> None:
        found = JsonObject(read_json(folder / FILE), str(folder / FILE))
        names = found.take_list("names", str)
        if not 2 <= len(names) <= MOST or len(set(names)) != len(names):
            raise found.wrong("names", f"is not a list of 2 to {MOST:,} different texts")
        counts = found.take_list("counts", int, length=len(names), least=0)
        examples = found.take("examples", int, least=max(counts)) if "examples" in found.values else None
        self.names, self.counts = names, Counter(dict(zip(names, counts, strict=True)))
        self.examples = self.counts.total() if examples is None else examples  # which earlier versions did not note

    def encode(self, value: str) -> int:
        return self._number(value)

    def pad(self, encoded: Sequence[int], generator: torch.Generator | None = None) -> Padded:
        return {"values": torch.tensor(list(encoded), dtype=torch.long)}

    def learned(self) -> str:
        shown = [f"{shortened(name)} ({self.counts[name]:,})" for name in self.names[:6]]
        return f"{len(self.names):,} classes: {', '.join(shown)}{', ...' if len(self.names) > 6 else ''}"

    def warnings(self, examples: int) -> list[str]:
        if len(self.names) > max(50, examples // 2):
            return [f"{len(self.names):,} different labels in {examples:,} examples: is that the right column?"]
        mark = self._separating()
        if mark is not None:
            other = "" if mark == "," else f" --task.label.separator {shlex.quote(mark)}"
            return [
                f"labels such as {shortened(next(n for n in self.names if mark in n))} seem to be several: for any "
                f"number of labels at once, set --task.label labels{other}"
            ]
        missing = next((name for name in self.names if self.given is None and name.lower() in MISSING), None)
        if missing is not None:
            count = f"{self.counts[missing]:,} of the examples"
            return [f"the label of {count} is {missing!r}. If that stands for a missing value, leave these rows out."]
        rare = [name for name in self.names if self.counts[name] == 0]
        return [f"No training example has the label {', '.join(map(repr, rare[:5]))}."] if rare else []

    def _separating(self) -> str | None:
        """The separator by which most labels are combinations of others, as in `bug`, `billing` and `billing,bug`."""
        known = set(self.names)
        for mark in SEPARATORS:
            joined = [name for name in self.names if mark in name]
            parts = [[part.strip() for part in name.split(mark)] for name in joined]
            if len(joined) > 1 and all(known.issuperset(several) for several in parts):
                return mark
        return None

    @property
    def positive_class(self) -> int | None:
        """The index of the positive class; None without one."""
        return None if self.positive is None or not self.names else self._numbers()[self.positive]

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
            raise cell.bad(f"the model does not know the {cell.role} {name!r:.60}", f"{self._meant(name)} {LEAVE_OUT}")

    def _meant(self, name: str) -> str:
        """The label that an unknown one was probably meant to be."""
        return nearest(name, self.names).strip()


@fields.register("labels")
class Labels(Label):
    """Any number of classes at once, such as the topics of a text: a list, or names with a separator between them.

    Args:
        names: the classes; by default those of the training data.
        separator: what separates the names in a cell of text.
    """

    def __init__(self, *, names: list[str] | None = None, separator: str = ",") -> None:
        super().__init__(names=names)
        if not separator:
            raise ValueError("separator must not be empty.")
        self.separator = separator
        self.most: int | None = None
        """The most labels that a training example has, once that is known."""

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
        counts, examples = Counter[str](), 0
        for examples, several in enumerate(values, start=1):  # noqa: B007 (counted)
            counts.update(several)
            self.most = max(self.most or 0, len(several))
        self._learn(counts, examples)

    def warnings(self, examples: int) -> list[str]:
        found = super().warnings(examples)
        if self.most is not None and self.most < 2:
            others = Counter(mark for name in self.names for mark in SEPARATORS if mark in name.strip(mark))
            fix = "If each has just one, use --task.label label"
            if others:
                mark = shlex.quote(others.most_common(1)[0][0])
                fix = f"If another one does, set it: --task.label.separator {mark}"
            found.append(f"no example has more than one label: the separator {self.separator!r} never occurs. {fix}")
        return found

    def _separating(self) -> str | None:
        return None

    def _meant(self, name: str) -> str:
        other = next((mark for mark in SEPARATORS if {*map(str.strip, name.split(mark))} <= {*self.names}), None)
        if other is None:
            return super()._meant(name)
        return f"This run separates labels with {self.separator!r}, not with {other!r}."

    def strata(self, value: Sequence[str]) -> Sequence[str]:
        return value

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


def shortened(name: str) -> str:
    """A name on one line, shortened if it is long: a wrong column may contain whole texts."""
    line = one_line(name)
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."


def _is_number(name: str) -> bool:
    try:
        return math.isfinite(float(name))
    except ValueError:
        return False
