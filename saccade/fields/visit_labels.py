"""Labels at each visit, instead of one for the whole record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from saccade.data.cell import Cell, shown
from saccade.fields.base import Padded, fields
from saccade.fields.label import Label, Labels
from saccade.fields.visit_cells import by_time, parsed

UNKNOWN = -1
"""Marks a visit whose outcome is unknown."""


@fields.register("visit_label")
class VisitLabel(Label):
    """A class at each visit of a record, such as whether the patient came back within a month.

    A cell is a list with one class for each visit, null where it is unknown. In a long table the columns are time and
    class (`--data.columns label=time+outcome`), and all rows of a visit have the same class.

    Args:
        names: the classes; by default those of the training data.
        positive: of two classes, the one to detect; see `Label`.
    """

    holds = ""
    gathers = True

    def __init__(self, *, names: list[str] | None = None, positive: str | None = None) -> None:
        super().__init__(names=names, positive=positive)

    def read(self, raw: Any, cell: Cell) -> list[str | None]:  # type: ignore[override] # a class for each visit
        return [None if _missing(part) else super(VisitLabel, self).read(part, cell) for part in _listed(raw, cell)]

    def gather(self, raws: Sequence[Any], name: str, cell: Cell) -> list[Any]:
        return [_common(rows, name, cell) for rows in _by_visit(raws, cell)]

    def fit(self, values: Iterable[list[str | None]]) -> None:  # type: ignore[override]
        self._learn(Counter(name for visits in values for name in visits if name is not None))

    def strata(self, value: Sequence[str | None]) -> Sequence[str]:
        return sorted({name for name in value if name is not None})

    def encode(self, value: list[str | None]) -> list[int]:  # type: ignore[override]
        return [UNKNOWN if name is None else self._number(name) for name in value]

    def size(self, encoded: Any) -> int:
        return 1

    def pad(self, encoded: Sequence[Sequence[int]], generator: torch.Generator | None = None) -> Padded:  # type: ignore[override]
        padded = torch.full((len(encoded), max(map(len, encoded))), UNKNOWN)
        for row, numbers in enumerate(encoded):
            padded[row, : len(numbers)] = torch.tensor(list(numbers), dtype=torch.long)
        return {"values": padded.clamp(min=0), "mask": padded != UNKNOWN}

    def show(self, value: Sequence[str | None]) -> str:
        return " ".join("?" if name is None else name for name in value)


@fields.register("visit_labels")
class VisitLabels(Labels):
    """Any number of classes at each visit of a record, such as the diagnoses of the next visit.

    A cell is a list with a list of classes for each visit, null where they are unknown. In a long table the columns
    are time and class (`--data.columns label=time+outcome`); a visit has the classes of all its rows.

    Args:
        names: the classes; by default those of the training data.
    """

    gathers = True

    def __init__(self, *, names: list[str] | None = None) -> None:
        super().__init__(names=names)

    def read(self, raw: Any, cell: Cell) -> list[list[str] | None]:  # type: ignore[override] # several for each visit
        found = _listed(raw, cell)
        return [None if part is None else super(VisitLabels, self).read(part, cell) for part in found]

    def gather(self, raws: Sequence[Any], name: str, cell: Cell) -> list[Any]:
        return [[row[1] for row in rows if not _missing(row[1])] for rows in _by_visit(raws, cell)]

    def fit(self, values: Iterable[list[list[str] | None]]) -> None:  # type: ignore[override]
        counts, visits = Counter[str](), 0
        for value in values:
            for several in value:
                if several is not None:
                    counts.update(several)
                    visits += 1
        self._learn(counts, visits)

    def strata(self, value: Sequence[Sequence[str] | None]) -> Sequence[str]:
        return sorted({name for several in value for name in several or ()})

    def encode(self, value: list[list[str] | None]) -> list[list[int]]:  # type: ignore[override]
        return [[UNKNOWN] if several is None else [self._number(name) for name in several] for several in value]

    def pad(self, encoded: Sequence[Sequence[Sequence[int]]], generator: torch.Generator | None = None) -> Padded:  # type: ignore[override]
        chosen = torch.zeros(len(encoded), max(map(len, encoded)), len(self.names))
        known = torch.zeros(chosen.shape[:2], dtype=torch.bool)
        for row, visits in enumerate(encoded):
            for place, numbers in enumerate(visits):
                if list(numbers) != [UNKNOWN]:
                    known[row, place] = True
                    chosen[row, place, list(numbers)] = 1.0
        return {"values": chosen, "mask": known}

    def show(self, value: Sequence[Sequence[str] | None]) -> str:
        return " | ".join("?" if several is None else ", ".join(several) for several in value)


def _listed(raw: Any, cell: Cell) -> Sequence[Any]:
    found = parsed(raw, cell) if isinstance(raw, str) else raw
    if not isinstance(found, list | tuple) or not found:
        fix = 'Give one for each visit, null where it is not known: ["no", null, "yes"].'
        raise cell.bad(f"the {cell.role} is not a list with something for each visit but {shown(raw)}", fix)
    return found


def _by_visit(raws: Sequence[Any], cell: Cell) -> list[list[Sequence[Any]]]:
    """The rows (time, class) of each visit; rows without a time belong to none."""
    if not all(isinstance(row, list | tuple) and len(row) == 2 for row in raws):
        fix = "Give both, as in --data.columns label=time+outcome."
        raise cell.bad(f"the {cell.role} of visits in a long table takes two columns, time and class", fix)
    return list(by_time(raws, cell)[0].values())


def _common(rows: Sequence[Sequence[Any]], name: str, cell: Cell) -> Any:
    given = [row[1] for row in rows]
    different = next((each for each in given if each != given[0]), given[0])
    if different != given[0]:
        problem = f"the rows of {name!r:.40} at {rows[0][0].text} have {given[0]!r:.40} and {different!r:.40}"
        raise cell.bad(f"{problem} as the {cell.role}", "Give all rows of a visit the same.")
    return None if _missing(given[0]) else given[0]


def _missing(raw: Any) -> bool:
    return raw is None or (isinstance(raw, str) and not raw.strip())
