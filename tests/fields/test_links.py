"""Word alignments as a column."""

from pathlib import Path

import pytest

from saccade.data.cell import Cell
from saccade.data.errors import BadRow
from saccade.fields import Links, fields

CELL = Cell("pairs.tsv", 2, "alignment", Path())


def test_reachable_by_short_name():
    assert fields.get("links") is Links


@pytest.mark.parametrize("raw", ["0-0 1-2", "0p1", ""])
def test_links_stay_as_written(raw):
    assert Links().read(raw, CELL) == raw
    assert Links().read(None, CELL) == ""


@pytest.mark.parametrize("raw", ["0:0", "0-0 x", "-1-0", "0-"])
def test_what_is_no_link_is_named(raw):
    with pytest.raises(BadRow, match=r"pairs\.tsv, line 2: '.*' in the alignment is not a link\. Write links"):
        Links().read(raw, CELL)
