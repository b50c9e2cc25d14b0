"""Tables of an evaluation, which commands print and write as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from saccade.interpretation.text import visible_name

MOST_ROWS = 30
"""Rows that are printed; JSON has them all."""
WIDEST = 16
"""The maximum number of printed characters of a column's name."""


class Table(NamedTuple):
    """Numbers in named rows and columns."""

    name: str
    """In JSON: confusion."""
    title: str
    """What is printed above it."""
    columns: Sequence[str]
    rows: Mapping[str, Sequence[float]]
    printed: bool = True
    """Whether it is small enough to be read."""

    def as_json(self) -> dict[str, Any]:
        """The table in JSON's types, without NaN."""
        rows = {name: [None if math.isnan(value) else value for value in row] for name, row in self.rows.items()}
        return {"title": self.title, "columns": list(self.columns), "rows": rows}

    def lines(self) -> list[str]:
        """The table as text."""
        heads = [_short(column) for column in self.columns]
        names = [_short(name) for name in list(self.rows)[:MOST_ROWS]]
        cells = [[_cell(value) for value in row] for row in list(self.rows.values())[:MOST_ROWS]]
        widths = [max(len(head), *(len(row[place]) for row in cells)) for place, head in enumerate(heads)]
        margin = max(map(len, names))
        found = [self.title, " " * margin + _line(heads, widths)]
        found += [f"{name:{margin}}{_line(row, widths)}" for name, row in zip(names, cells, strict=True)]
        left = len(self.rows) - len(names)
        return [*found, f"... and {left:,} more rows: see --json"] if left else found


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths, strict=True))


def _short(name: str) -> str:
    shown = visible_name(name)
    return shown if len(shown) <= WIDEST else f"{shown[: WIDEST - 1]}…"


def _cell(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return "-" if math.isnan(value) else f"{value:.2f}"
