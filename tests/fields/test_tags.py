"""A label for each word."""

import pytest
import torch

from saccade.data.cell import Cell
from saccade.data.errors import BadRow
from saccade.fields import Tags, fields

CELL = Cell("words.csv", 7, "label")


def fitted() -> Tags:
    field = Tags()
    field.fit([["DET", "NOUN"], ["NOUN", "VERB", "DET"], ["NOUN"]])
    return field


def test_reachable_by_short_name():
    assert fields.get("tags") is Tags


@pytest.mark.parametrize("raw", ["O  B-place\tI-place ", ["O", "B-place", "I-place"], ("O", "B-place", "I-place")])
def test_a_cell_or_a_list(raw):
    assert Tags().read(raw, CELL) == ["O", "B-place", "I-place"]


def test_numbers_of_a_list_are_names():
    assert Tags().read([0, 3, 0.0], CELL) == ["0", "3", "0"]


def test_classes_are_learned_with_their_counts():
    field = fitted()
    assert field.names == ["DET", "NOUN", "VERB"]
    assert field.counts == {"DET": 2, "NOUN": 3, "VERB": 1}
    assert field.sizes() == {"classes": 3}
    assert field.encode(["VERB", "DET"]) == [2, 0]
    assert field.show(["VERB", "DET"]) == "VERB DET"


def test_padding_is_masked():
    field = fitted()
    padded = field.pad([field.encode(tags) for tags in (["VERB"], ["NOUN", "DET", "VERB"], [])])
    assert padded["values"].tolist() == [[2, 0, 0], [1, 0, 2], [0, 0, 0]]
    assert padded["mask"].tolist() == [[True, False, False], [True] * 3, [False] * 3]
    assert padded["values"].dtype is torch.long


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (["NOUN", "VREB"], "the model does not know the label 'VREB'"),
        (["NOUN", ""], "the label is empty"),
        ("  ", "the label is empty"),
        ([["NOUN"]], "the label is a list, but one label is expected"),
    ],
)
def test_bad_tags_are_named_with_their_place(raw, problem):
    with pytest.raises(BadRow, match=r"words\.csv, line 7") as caught:
        fitted().read(raw, CELL)
    assert problem in str(caught.value)
    if "VREB" in str(raw):
        assert "Did you mean 'VERB'" in str(caught.value)


def test_saved_and_loaded(tmp_path):
    fitted().save(tmp_path)
    field = Tags()
    field.load(tmp_path)
    assert (field.names, field.counts) == (fitted().names, fitted().counts)


def test_splits_keep_tags_in_proportion():
    assert Tags().strata(["N", "V", "N"]) == ["N", "V"]
