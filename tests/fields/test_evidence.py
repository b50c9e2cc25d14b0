import pytest

from saccade.data.cell import Cell
from saccade.data.errors import BadRow
from saccade.fields import Evidence, fields

CELL = Cell("reviews.csv", 3, "evidence")
TEXT = "a  dull,\tlong film"  # words at 0-1, 3-8, 9-13 and 14-18


def test_reachable_by_short_name():
    assert isinstance(fields.create("evidence"), Evidence)


@pytest.mark.parametrize(
    ("raw", "spans"),
    [
        ("3-8 14-18", [(3, 8), (14, 18)]),
        ("14-18, 3-8,3-8", [(3, 8), (14, 18)]),
        ("[[3, 8], [14, 18]]", [(3, 8), (14, 18)]),
        ([[14, 18], (3, 8)], [(3, 8), (14, 18)]),
        ("", []),
        (None, []),
        ([], []),
    ],
)
def test_every_way_to_write_spans(raw, spans):
    assert Evidence().read(raw, CELL) == spans
    assert Evidence().read(Evidence().show(spans), CELL) == spans


@pytest.mark.parametrize(
    "raw", ["dull", "3-", "8-3", "3-3", "[[3]]", "[3, 8]", [[1, 2.0]], [[True, 2]], [[-1, 2]], "[[", 7]
)
def test_anything_else_is_a_bad_row(raw):
    with pytest.raises(BadRow, match=r"reviews.csv.*3.*the evidence is not a list of spans.*12-57 80-93"):
        Evidence().read(raw, CELL)


def test_spans_of_characters_become_the_words_they_touch():
    field = Evidence()
    assert field.in_words([(3, 8), (9, 18)], TEXT) == [(1, 2), (2, 4)]
    assert field.in_words([(0, 4)], TEXT) == [(0, 2)]
    assert field.in_words([(1, 3)], TEXT) == []  # white space
    assert field.in_words([(17, 18)], TEXT) == [(3, 4)]
    with pytest.raises(ValueError, match="evidence 14-19 is beyond the end of a text of 18 characters"):
        field.in_words([(14, 19)], TEXT)


def test_spans_of_words():
    field = Evidence(unit="words")
    assert field.in_words([(1, 3)], TEXT) == [(1, 3)]
    with pytest.raises(ValueError, match="evidence 2-5 is beyond the end of a text of 4 words"):
        field.in_words([(2, 5)], TEXT)
    with pytest.raises(ValueError, match="unit must be 'characters' or 'words', got 'tokens'"):
        Evidence(unit="tokens")
