"""Word alignments."""

from __future__ import annotations

from typing import Any

from saccade.data.cell import Cell, text_of
from saccade.fields.base import Field, fields
from saccade.interpretation.alignments import read_pharaoh


@fields.register("links")
class Links(Field):
    """Links between the words of two texts: `0-0 1-2`, counted from 0. A pair of texts may have none.

    Only the task knows what the links connect, so it encodes them.
    """

    def read(self, raw: Any, cell: Cell) -> str:
        text = "" if raw is None else text_of(raw, cell, may_be_empty=True)
        try:
            read_pharaoh(text, "The alignment")
        except ValueError as error:
            raise cell.bad(f"the {cell.role} is not an alignment ({error})", "Write links such as 0-0 1-2.") from None
        return text
