"""Where things are in a picture."""

from __future__ import annotations

import json
from numbers import Real
from typing import Any

from saccade.data.cell import Cell, shown, text_of
from saccade.evaluation.pointing import Box
from saccade.fields.base import Field, fields

FIX = (
    "Write left, top, right and bottom as shares of the picture, from 0 to 1: [[0.1, 0.2, 0.5, 0.9]], with null for a "
    "word that names nothing."
)


@fields.register("boxes")
class Boxes(Field):
    """The parts of a picture that a caption's words, or a label, refer to.

    A cell is a list `[[left, top, right, bottom], null, ...]`, also as JSON: fractions of the width and height of the
    square that the model reads, which is the whole picture with `square: stretch`. A caption has an entry for each of
    its words: a box, a list of boxes, or null. A label has any number of boxes. Boxes are compared with what a model
    attends to. Models do not learn from them.
    """

    def read(self, raw: Any, cell: Cell) -> list[list[Box]]:
        entries = raw
        if raw is None or isinstance(raw, str):
            text = "" if raw is None else text_of(raw, cell, may_be_empty=True).strip()
            try:
                entries = json.loads(text) if text else []
            except (ValueError, RecursionError):
                entries = None
        found = [_boxes(entry) for entry in entries] if isinstance(entries, list | tuple) else [None]
        known = [entry for entry in found if entry is not None]
        if len(known) < len(found):
            raise cell.bad(f"the {cell.role} is not a list of boxes ({shown(raw)})", FIX)
        return known

    def show(self, value: list[list[Box]]) -> str:
        return json.dumps(value)


def _boxes(entry: Any) -> list[Box] | None:
    """The boxes of one word; None if they are none."""
    several = [] if entry is None else entry if _is_list(entry) and all(map(_is_list, entry)) else [entry]
    return [tuple(map(float, box)) for box in several] if all(map(_is_box, several)) else None  # type: ignore[misc]


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _is_box(box: Any) -> bool:
    if not _is_list(box) or len(box) != 4:
        return False
    if any(isinstance(edge, bool) or not isinstance(edge, Real) for edge in box):
        return False
    left, top, right, bottom = box
    return bool(0 <= left < right <= 1 and 0 <= top < bottom <= 1)
