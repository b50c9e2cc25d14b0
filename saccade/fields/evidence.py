"""What people marked in a text."""

from __future__ import annotations

import json
import re
from typing import Any, Literal

from saccade.data.cell import Cell, shown, text_of
from saccade.fields.base import Field, fields

WORD = re.compile(r"\S+")
SPAN = re.compile(r"(\d{1,9})-(\d{1,9})")
FIX = "Write spans with their ends exclusive, as 12-57 80-93 or [[12, 57], [80, 93]]."

Span = tuple[int, int]


@fields.register("evidence")
class Evidence(Field):
    """The parts of a text that people marked as the reason for its label: spans with exclusive ends.

    A cell is `12-57 80-93`, or a list `[[12, 57], [80, 93]]`; an empty cell means that nothing was marked. Evidence is
    compared with what a model picks or attends to. Models do not learn from it.

    Args:
        unit: what is counted, from 0: "characters", or "words" separated by spaces.
        input: the input that was marked, for tasks with several; the first by default.
    """

    def __init__(self, *, unit: Literal["characters", "words"] = "characters", input: str | None = None) -> None:
        if unit not in ("characters", "words"):
            raise ValueError(f"unit must be 'characters' or 'words', got {unit!r}.")
        self.counts = unit
        self.input = input

    def read(self, raw: Any, cell: Cell) -> list[Span]:
        spans = raw
        if raw is None or isinstance(raw, str):
            spans = self._parsed("" if raw is None else text_of(raw, cell, may_be_empty=True).strip())
        good = isinstance(spans, list | tuple) and all(_is_span(each) for each in spans)
        if not good:
            raise cell.bad(f"the {cell.role} is not a list of spans ({shown(raw)})", FIX)
        return sorted({(int(start), int(end)) for start, end in spans})

    @staticmethod
    def _parsed(text: str) -> Any:
        if text.startswith("["):
            try:
                return json.loads(text)
            except (ValueError, RecursionError):
                return None
        found = [SPAN.fullmatch(part) for part in text.replace(",", " ").split()]
        return [(int(each[1]), int(each[2])) for each in found if each] if all(found) else None

    def in_words(self, value: list[Span], text: str) -> list[Span]:
        """The spans of a text in words: a span includes every word of which it has a character."""
        places = [match.span() for match in WORD.finditer(text)]
        size = len(places) if self.counts == "words" else len(text)
        beyond = next(((start, end) for start, end in value if end > size), None)
        if beyond is not None:
            raise ValueError(
                f"the evidence {beyond[0]}-{beyond[1]} is beyond the end of a text of {size} {self.counts}."
            )
        if self.counts == "words":
            return list(value)
        found = []
        for start, end in value:
            touched = [number for number, (begins, ends) in enumerate(places) if begins < end and start < ends]
            if touched:  # a span of white space marks nothing
                found.append((touched[0], touched[-1] + 1))
        return sorted(set(found))

    def show(self, value: list[Span]) -> str:
        return " ".join(f"{start}-{end}" for start, end in value)


def _is_span(span: Any) -> bool:
    whole = isinstance(span, list | tuple) and len(span) == 2 and all(type(place) is int for place in span)
    return whole and 0 <= span[0] < span[1]
