"""A field whose values may be missing: what it does with those that are not is what the field itself does."""

import pytest
import torch

from saccade.data.cell import Cell
from saccade.data.errors import DataError
from saccade.data.examples import Examples, read_rows
from saccade.fields import Image, Number, OptionalField, Text, plain

CELL = Cell("pairs.csv", 3, "fr")


@pytest.fixture
def text():
    field = OptionalField(Text(tokeniser="char"), role="fr")
    field.fit(["abc", None, "cab"])
    return field


def test_empty_cells_are_missing_and_others_are_read(text):
    assert [text.read(raw, CELL) for raw in ("ab", "", "  ", None)] == ["ab", None, None, None]
    assert text.encode(None) is None
    assert text.encode("ab") == plain(text).encode("ab")
    assert (text.size(None), text.size([5, 2])) == (0, 2)
    assert (text.show(None), text.show("ab")) == ("", "ab")
    assert text.unknown("abz") == ["z"]
    assert text.unknown(None) == []


def test_missing_values_are_masked(text):
    whole, padded = plain(text).pad([[4, 5, 2], [6, 2]]), text.pad([[4, 5, 2], None, [6, 2], None])
    assert torch.equal(padded["values"][[0, 2]], whole["values"])
    assert torch.equal(padded["mask"].any(1), torch.tensor([True, False, True, False]))
    assert not padded["values"][[1, 3]].any()
    nothing = text.pad([None, None])
    assert nothing["values"].dtype == torch.long
    assert not nothing["mask"].any()


def test_missing_pictures_have_vectors_of_zeros():
    pytest.importorskip("PIL")
    field = OptionalField(Image(size=8, patch=4), role="picture")
    nothing = field.pad([None, None, None])
    assert nothing["values"].shape == (3, 1, 48)
    value = field.read(torch.rand(8, 8, 3).numpy(), CELL)
    padded = field.pad([None, field.encode(value)])
    assert padded["mask"].tolist() == [[False] * 4, [True] * 4]


def test_a_column_may_be_absent_unless_it_must_exist(text):
    fields = {"source": OptionalField(Text(), role="source", column=True), "fr": text}
    assert read_rows([{"source": "a"}], fields) == [{"fr": None, "source": "a"}]
    assert list(Examples([{"source": "", "fr": "b"}, {"source": "a"}], fields)) == [
        {"fr": "b", "source": None},
        {"fr": None, "source": "a"},
    ]
    with pytest.raises(DataError, match="source"):
        read_rows([{"fr": "b"}], fields)


def test_without_any_value_there_is_nothing_to_learn_from():
    with pytest.raises(DataError, match="No training example has a fr"):
        OptionalField(Text(), role="fr").fit([None, None])
    with pytest.raises(ValueError, match="Number"):
        OptionalField(Number(), role="fr").share(OptionalField(Text(), role="de"))
