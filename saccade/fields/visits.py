"""Patient records: what was recorded at each visit, and when."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from saccade.artifacts import JsonObject, read_json
from saccade.checks import check_count
from saccade.data.cell import Cell
from saccade.fields.base import Field, Padded, fields
from saccade.fields.visit_cells import ROWS, Codes, Record, Visit, read_record
from saccade.fields.visit_codes import Codebook
from saccade.interpretation.explorer import VisitAxis

FILE = "visits.json"


@fields.register("visits")
class Visits(Field):
    """The visits of a patient: the codes recorded at each, with or without numbers, and the time between them.

    A cell is a list of visits, each a list of codes or `{"time": ..., "codes": ...}`; codes are a list of names, or an
    object from names to values. `{"visits": [...], "static": {...}}` adds what belongs to the patient: sex, year of
    birth. In a long table, whose rows `data.group` puts together, the columns are time, code and, if there is one,
    value (`--data.columns record=time+code+value`); rows without a time are static.

    Times are days, or ISO 8601 dates. A model reads each code as present or not, its number scaled to mean 0 and
    standard deviation 1, and log(1 + days) since the previous visit. Values that are not numbers become part of the
    name (`smoker=yes`).

    Args:
        max_visits: the maximum number of visits that are read, counted from the last.
        min_count: codes that occur in fewer training examples are ignored.
    """

    gathers = True
    unit = "visits"

    def __init__(self, *, max_visits: int = 200, min_count: int = 1) -> None:
        check_count("max_visits", max_visits)
        check_count("min_count", min_count)
        self.max_visits = max_visits
        self.min_count = min_count
        self.book = Codebook()
        self.static = Codebook()
        self._names: set[str] = set()

    @property
    def longest(self) -> int:
        return self.max_visits

    def read(self, raw: Any, cell: Cell) -> Record:
        return read_record(raw, cell)

    def gather(self, raws: Sequence[Any], name: str, cell: Cell) -> Any:
        return {ROWS: raws, "name": name}

    def fit(self, values: Iterable[Record]) -> None:
        static: list[Codes] = []

        def visits() -> Iterable[Sequence[Visit]]:
            for value in values:
                self._names.add(value["name"])
                static.append(value["static"])
                yield value["visits"]

        self.book.learn(visits(), min_count=self.min_count)
        self.static.learn(([each] for each in static), min_count=self.min_count)
        if not self.book.names:
            fewer = f" in {self.min_count} or more of them (min_count)" if self.min_count > 1 else ""
            raise ValueError(f"there are no codes{fewer}.")

    def sizes(self) -> dict[str, int]:
        return {"vocab": self.book.size, "static": self.static.size, "each_visit": False}  # unless the labels say so

    def save(self, folder: Path) -> None:
        content = {"visits": self.book.as_json(), "static": self.static.as_json()}
        (folder / FILE).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")

    def load(self, folder: Path) -> None:
        found = JsonObject(read_json(folder / FILE), str(folder / FILE))
        self.book.load(found.inner("visits"))
        self.static.load(found.inner("static"))

    def encode(self, value: Record) -> dict[str, Any]:
        visits = [list(self.book.features(visit)) for visit in value["visits"]]
        static = list(self.static.features(value["static"]))
        return {
            "codes": [[feature.id for feature in features] for features in visits],
            "amounts": [[feature.amount for feature in features] for features in visits],
            "gaps": _gaps(value["visits"]),
            "static": [feature.id for feature in static],
            "static_amounts": [feature.amount for feature in static],
        }

    def size(self, encoded: dict[str, Any]) -> int:
        return min(len(encoded["codes"]), self.max_visits)

    def truncated(self, encoded: dict[str, Any]) -> str | None:
        return f"more than max_visits={self.max_visits} visits" if len(encoded["codes"]) > self.max_visits else None

    def pad(self, encoded: Sequence[dict[str, Any]], generator: torch.Generator | None = None) -> Padded:
        """codes and their amounts (batch, visits, codes), the mask and gaps of visits, static ids and amounts."""
        last = slice(-self.max_visits, None)
        codes, amounts = ([each[name][last] for each in encoded] for name in ("codes", "amounts"))
        visits = max(map(len, codes))
        width = max(1, *(len(visit) for each in codes for visit in each))
        mask = torch.arange(visits) < torch.tensor([[len(each)] for each in codes])
        static = max(1, *(len(each["static"]) for each in encoded))
        return {
            "values": _filled(codes, (visits, width), torch.long),
            "mask": mask,
            "amounts": _filled(amounts, (visits, width), torch.float32),
            "gaps": _filled([[each["gaps"][last]] for each in encoded], (1, visits), torch.float32)[:, 0],
            "static": _filled([[each["static"]] for each in encoded], (1, static), torch.long)[:, 0],
            "static_amounts": _filled([[each["static_amounts"]] for each in encoded], (1, static), torch.float32)[:, 0],
        }

    def axis(self, value: Record, length: int | None = None) -> VisitAxis:
        read = value["visits"][-self.max_visits :]
        first = len(value["visits"]) - len(read) + 1
        names = [visit["when"] or f"visit {number}" for number, visit in enumerate(read, start=first)]
        days = [visit["time"] for visit in read]
        shown = [[_shown(*pair) for pair in zip(v["codes"], v["numbers"], strict=True)] for v in read]
        static = zip(value["static"]["codes"], value["static"]["numbers"], strict=True)
        known = None if None in days else [day for day in days if day is not None]
        return VisitAxis(names=names, codes=shown, days=known, static=[_shown(*pair) for pair in static])

    def codes(self, value: Record) -> list[list[str]]:
        return [visit["codes"] for visit in value["visits"]]

    def places(self, value: Record) -> tuple[list[list[int]], list[int]]:
        """For each feature of `pad`, the place of its code: of each visit that is read, and of the patient."""
        read = value["visits"][-self.max_visits :]
        of_visits = [[feature.place for feature in self.book.features(visit)] for visit in read]
        return of_visits, [feature.place for feature in self.static.features(value["static"])]

    def portable(self) -> dict[str, Any]:
        books = {"visits": self.book.as_json(), "static": self.static.as_json()}
        return {"kind": "visits", "max_visits": self.max_visits, **books}

    def stand_ins(self, count: int, length: int) -> Padded:
        visits, codes, static = min(length, self.max_visits), length + 3, length + 6
        return {
            "values": torch.randint(self.book.size, (count, visits, codes)),
            "mask": torch.arange(visits) < torch.arange(visits, visits - count, -1).clamp(min=1).unsqueeze(1),
            "amounts": torch.randn(count, visits, codes),
            "gaps": torch.rand(count, visits),
            "static": torch.randint(self.static.size, (count, static)),
            "static_amounts": torch.randn(count, static),
        }

    def show(self, value: Record) -> str:
        visits, codes = len(value["visits"]), sum(len(visit["codes"]) for visit in value["visits"])
        counted = f"{visits:,} visit{'s' * (visits != 1)}, {codes:,} code{'s' * (codes != 1)}"
        return f"{value['name']}: {counted}" if value["name"] else counted

    def learned(self) -> str:
        found = f"{len(self.book.names):,} codes"
        if self.book.scales:
            found += f", {len(self.book.scales):,} of them with numbers"
        return f"{found}; {len(self.static.names):,} static" if self.static.names else found

    def leaks(self, values: Iterable[Record]) -> list[str]:
        names = {value["name"] for value in values} - {""}
        both = len(names & self._names)
        return (
            [f"{both:,} of {len(names):,} patients in the validation data are also in the training data."]
            if both
            else []
        )

    def warnings(self, examples: int) -> list[str]:
        if len(self.book.names) > max(1000, 10 * examples):
            return [f"{len(self.book.names):,} different codes in {examples:,} examples: is that the right column?"]
        return []

    def unknown(self, value: Record) -> list[str]:
        found = [name for visit in value["visits"] for name in self.book.unknown(visit)]
        return list(dict.fromkeys(found + self.static.unknown(value["static"])))


def _gaps(visits: Sequence[Visit]) -> list[float]:
    """log(1 + days) since the previous visit; 0 for the first, and where times are unknown."""
    times = [visit["time"] or 0.0 for visit in visits]
    return [0.0, *(math.log1p(max(0.0, after - before)) for before, after in pairwise(times))]


def _filled(lists: Sequence[Sequence[Sequence[float]]], shape: tuple[int, int], dtype: torch.dtype) -> torch.Tensor:
    """(batch, *shape): lists of lists, with zeros after their ends."""
    found = torch.zeros(len(lists), *shape, dtype=dtype)
    lengths = torch.zeros(len(lists), shape[0], dtype=torch.long)
    for row, each in enumerate(lists):
        lengths[row, : len(each)] = torch.tensor([len(inner) for inner in each], dtype=torch.long)
    flat = [number for each in lists for inner in each for number in inner]
    found[torch.arange(shape[1]) < lengths.unsqueeze(-1)] = torch.tensor(flat, dtype=dtype)
    return found


def _shown(name: str, number: float | None) -> str:
    return name if number is None else f"{name} {number:g}"
