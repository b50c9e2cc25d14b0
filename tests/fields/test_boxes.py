"""Boxes in pictures."""

import pytest

from saccade.data.cell import Cell
from saccade.data.errors import BadRow
from saccade.fields import Boxes, fields

CELL = Cell("captions.jsonl", 3, "boxes")
BOX = (0.0, 0.25, 0.5, 1.0)


def test_reachable_by_short_name() -> None:
    assert isinstance(fields.create("boxes"), Boxes)


@pytest.mark.parametrize(
    ("raw", "boxes"),
    [
        ("[[0, 0.25, 0.5, 1], null]", [[BOX], []]),
        ([list(BOX), None, [BOX, [0, 0, 1, 1]]], [[BOX], [], [BOX, (0.0, 0.0, 1.0, 1.0)]]),
        ([[]], [[]]),
        ("", []),
        (None, []),
    ],
)
def test_every_way_to_write_boxes(raw, boxes) -> None:
    assert Boxes().read(raw, CELL) == boxes
    assert Boxes().read(Boxes().show(boxes), CELL) == boxes


@pytest.mark.parametrize(
    "raw",
    ["left", "[[", "{}", "[[0, 0, 1]]", [[0, 0, 2, 1]], [[0.5, 0, 0.5, 1]], [[0, 0, 10**400, 1]], [[True] * 4], 7],
)
def test_anything_else_is_a_bad_row(raw) -> None:
    with pytest.raises(BadRow, match=r"captions.jsonl.*3.*the boxes is not a list of boxes.*shares of the picture"):
        Boxes().read(raw, CELL)
