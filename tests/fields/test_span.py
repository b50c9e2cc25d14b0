"""Parts of a text: what a cell may hold."""

from pathlib import Path

import pytest

from saccade.data.cell import Cell
from saccade.data.errors import BadRow
from saccade.fields import Span

CELL = Cell("questions.jsonl", 7, "span", Path())


@pytest.mark.parametrize(
    ("raw", "texts", "starts"),
    [
        ("Paris", ["Paris"], [-1]),
        (1984, ["1984"], [-1]),
        (" Paris ", ["Paris"], [-1]),
        (["Paris", "the city"], ["Paris", "the city"], [-1, -1]),
        ({"text": "Paris", "start": 17}, ["Paris"], [17]),
        ({"text": ["Paris", "city"], "answer_start": [17, 3]}, ["Paris", "city"], [17, 3]),
        ({"text": [], "answer_start": []}, [], []),
        ("", [], []),
        (None, [], []),
    ],
)
def test_cells(raw, texts, starts):
    value = Span().read(raw, CELL)
    assert value == {"texts": texts, "starts": starts}
    assert Span().show(value) == (texts[0] if texts else "(none)")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"text": "a", "start": "3"}, r"1 texts and the starts \['3'\]"),
        ({"text": ["a", "b"], "start": [1]}, "2 texts and the starts"),
        ({"text": "a", "start": -7}, "starts"),
        (2.5, "not text but float"),
    ],
)
def test_bad_cells_are_named_with_their_place(raw, message):
    with pytest.raises(BadRow, match=rf"questions\.jsonl, line 7: .*{message}"):
        Span().read(raw, CELL)
