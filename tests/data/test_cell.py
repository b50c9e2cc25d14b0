import pickle

import numpy as np
import pytest

from saccade.data.cell import Cell, shown, text_of
from saccade.data.errors import BadRow

CELL = Cell("pairs.tsv", 3, "source")


def test_texts_and_whole_numbers_are_text():
    assert text_of("日本 a", CELL) == "日本 a"
    assert text_of(7, CELL) == text_of(np.int64(7).item(), CELL) == "7"
    assert text_of("", CELL, may_be_empty=True) == text_of(None, CELL, may_be_empty=True) == ""


@pytest.mark.parametrize(
    ("raw", "problem", "fix"),
    [
        (None, "the source is empty", "--data.bad_rows skip"),
        (" \u00a0\t", "the source is empty", "--data.bad_rows skip"),
        ("a\udce4b", r"the source is not UTF-8 (byte 0xE4)", "iconv -f LATIN1 -t UTF-8 in > out"),
        ("a\ud83d", r"the source contains half a character (\ud83d)", "surrogate pair"),
        ("a\0b", "the source contains a NUL character", "iconv -f UTF-16 -t UTF-8"),
        (True, "the source is not text but bool (True)", "string"),
        (2.5, "the source is not text but float (2.5)", "string"),
        (["a"] * 9, "the source is not text but list (of length 9)", "string"),
        (np.zeros((3, 4)), "the source is not text but ndarray (of shape (3, 4))", "string"),
        (b"x" * 99, f"the source is not text but bytes ({b'x' * 40!r}...)", "string"),
        (2**1500, "the source is an integer of more than 300 digits", "string"),
    ],
    ids=range(11),
)
def test_other_values_are_bad_rows(raw, problem, fix):
    with pytest.raises(BadRow) as caught:
        text_of(raw, CELL)
    assert caught.value.problem == problem
    assert fix in caught.value.fix
    assert str(caught.value).startswith("pairs.tsv, line 3: the source")
    assert "\n" not in str(caught.value)


def test_a_command_stays_the_end_of_an_error():
    with pytest.raises(BadRow) as caught:
        text_of("a\0b", CELL)
    advice = "--data.bad_rows skip leaves such rows out."
    assert str(caught.value.with_advice()).endswith("iconv -f UTF-16 -t UTF-8 in > out")
    assert advice in str(caught.value.with_advice())
    assert str(CELL.bad("wrong", "Mend it.").with_advice()).endswith(f"Mend it. {advice}")


def test_bad_rows_survive_other_processes():
    bad = CELL.bad("wrong\nin two lines", "Mend it.")
    assert str(bad) == "pairs.tsv, line 3: wrong in two lines. Mend it."
    assert str(pickle.loads(pickle.dumps(bad))) == str(bad)


def test_values_are_shown_short():
    assert shown(10**5000) == "a huge integer"
    assert shown("x" * 50) == f"{'x' * 40!r}..."
    assert shown(1.5) == "1.5"
    assert shown(object()) == "a object"
