"""Word alignments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from saccade.data.cell import Cell, shown, text_of
from saccade.fields.base import Field, fields
from saccade.interpretation.alignments import read_pharaoh
from saccade.interpretation.alignments.formats import PAIR


@fields.register("links")
class Links(Field):
    """Links between the words of two texts: `0-0 1-2`, counted from 0. A pair of texts may have none.

    Only the task knows what the links connect, so it encodes them.
    """

    def __init__(self) -> None:
        self.without = self.examples = 0

    def fit(self, values: Iterable[str]) -> None:
        linked = [bool(value.strip()) for value in values]
        self.examples, self.without = len(linked), linked.count(False)

    def learned(self) -> str:
        return f"{self.without:,} of {self.examples:,} examples have no links" if self.without else ""

    def read(self, raw: Any, cell: Cell) -> str:
        text = "" if raw is None else text_of(raw, cell, may_be_empty=True)
        try:
            read_pharaoh(text)
        except ValueError:
            strange = next((pair for pair in text.split() if PAIR.fullmatch(pair) is None), text)
            fix = "Write links as 0-2 (sure) or 0p2 (possible), source first, separated by spaces."
            raise cell.bad(f"{shown(strange)} in the {cell.role} is not a link", fix) from None
        return text
