"""Points in time."""

import math
from datetime import UTC, datetime
from pathlib import Path

import pytest

from saccade.data.cell import Cell
from saccade.data.errors import BadRow
from saccade.fields import Moment, fields

CELL = Cell("reviews.csv", 3, "time", Path())


@pytest.mark.parametrize(
    ("raw", "seconds"),
    [
        (1457554500, 1457554500.0),
        ("1457554500", 1457554500.0),
        (1457554500123, 1457554500.123),
        ("2016-03-09 20:15:00", 1457554500.0),
        ("2016-03-09T21:15:00+01:00", 1457554500.0),
        ("2016-03-09", 1457481600.0),
        (datetime(2016, 3, 9, tzinfo=UTC), 1457481600.0),
        ("", None),
        (None, None),
    ],
)
def test_seconds_milliseconds_and_dates(raw, seconds):
    assert fields.get("moment") is Moment
    assert Moment().read(raw, CELL) == seconds


@pytest.mark.parametrize("raw", ["soon", "2016-13-45", True, [1], "nan", float("inf"), 10**400])
def test_anything_else_is_refused(raw):
    with pytest.raises(BadRow, match=r"line 3: the time is not a point in time but .*2016-03-09"):
        Moment().read(raw, CELL)


def test_shown_and_encoded():
    field = Moment()
    assert field.show(1457554500.0) == "2016-03-09 20:15:00"
    assert field.show(None) == ""
    assert field.show(1e15) == "1e+15 s"
    assert math.isnan(field.encode(None))
    assert field.encode(5.0) == 5.0
