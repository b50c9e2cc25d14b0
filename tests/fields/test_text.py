"""Texts, several columns of them, and several right answers."""

from pathlib import Path

import pytest
import torch

from saccade.artifacts import ArtifactError
from saccade.data.cell import Cell
from saccade.data.errors import BadRow
from saccade.data.special import EOS, PAD
from saccade.data.tokenisers import BpeTokeniser, WordTokeniser
from saccade.fields import Text, fields

CELL = Cell("pairs.tsv", 7, "source", Path())
TEXTS = ["a cab", "cab", "a"]


def fitted(**arguments) -> Text:
    field = Text(tokeniser="char", **arguments)
    field.fit(TEXTS)
    return field


def test_reachable_by_short_name():
    assert fields.get("text") is Text


def test_cells_are_texts_as_they_stand():
    assert Text().read(" a b ", CELL) == " a b "
    assert Text().read(1984, CELL) == "1984"


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("", r"pairs\.tsv, line 7: the source is empty"),
        (" \t", "the source is empty"),
        (None, "the source is empty"),
        (2.5, r"the source is not text but float \(2\.5\)"),
        ({"a": 1}, "the source is not text but dict"),
        ("a\0b", "NUL"),
        ("\udcff", "not UTF-8"),
        ([], "the source is an empty list. Give at least one text"),
        (["a", ""], "the source is empty"),
    ],
)
def test_bad_cells_are_named_with_their_place(raw, message):
    with pytest.raises(BadRow, match=message):
        Text().read(raw, CELL)


def test_several_columns_become_one_text():
    assert Text().read(["run", "V;PST"], CELL) == "run V;PST"
    assert Text(join="{} <{}>").read(("run", "V;PST"), CELL) == "run <V;PST>"
    with pytest.raises(BadRow, match=r"join='\{\} <\{\}>' joins 2 texts, got 1"):
        Text(join="{} <{}>").read(["run"], CELL)


def test_several_columns_may_be_several_right_answers():
    field = Text(tokeniser="char")
    field.references = True
    assert field.read(["cat", "a cat"], CELL) == ["cat", "a cat"]
    assert field.read(["cat"], CELL) == "cat"
    field.fit([["ab", "xy"]])
    assert field.tokeniser.size == 4 + 4  # the vocabulary is that of all of them
    assert field.encode(["ab", "xy"]) == field.encode("ab")  # training uses the first
    assert field.show(["ab", "xy"]) == "ab"


def test_encoding_ends_and_round_trips():
    field = fitted()
    encoded = field.encode("a cab")
    assert encoded[-1] == EOS
    assert field.tokeniser.decode(encoded) == "a cab"
    assert field.size(encoded) == 6
    assert field.sizes() == {"vocab": field.tokeniser.size} != Text(tokeniser="char").sizes()


def test_long_texts_are_left_out_and_clipped():
    field = fitted(max_length=3)
    assert [field.left_out(field.encode(text)) for text in TEXTS] == [
        "longer than max_length=3 tokens",
        None,
        None,
    ]
    assert field.tokeniser.decode(field.clip(field.encode("a cab"), 3)) == "a c"
    assert field.clip(field.encode("a cab"), 3)[-1] == EOS
    assert field.clip(field.encode("cab"), 3) == field.encode("cab")
    with pytest.raises(ValueError, match="max_length must be 1 or more, got 0"):
        Text(max_length=0)


def test_padding_and_its_mask():
    field = fitted()
    encoded = [field.encode(text) for text in TEXTS]
    padded = field.pad(encoded)
    assert padded["values"].dtype == torch.long
    assert padded["mask"].sum(1).tolist() == [6, 4, 2]
    for row, mask, wanted in zip(padded["values"], padded["mask"], encoded, strict=True):
        assert row[mask].tolist() == wanted
        assert (row[~mask] == PAD).all()


def test_what_was_learned_is_saved_and_loaded(tmp_path):
    field = Text(tokeniser=BpeTokeniser(vocab_size=19))
    field.fit(["lowest low lower", "newest new newer"])
    field.save(tmp_path)
    other = Text(tokeniser=BpeTokeniser(vocab_size=19))
    other.load(tmp_path)
    assert other.encode("lowest newer") == field.encode("lowest newer")
    assert other.sizes() == field.sizes()
    assert field.learned() == f"{field.tokeniser.size} pieces (bpe)"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"kind": "char"}', '{"kind": "char", "tokens": [1, 2]}'])
def test_a_damaged_file_is_refused(content, tmp_path):
    (tmp_path / "tokeniser.json").write_text(content)
    with pytest.raises((ArtifactError, ValueError), match=r"tokeniser\.json"):
        Text().load(tmp_path)


def test_the_axis_has_words_and_an_end():
    axis = fitted().axis("a cab")
    assert "".join(axis.pieces) == "a cab</s>"
    assert axis.words == [[0], [2, 3, 4]]
    assert axis.special == [5]
    assert fitted().axis("cab").words is None  # one word is shown in pieces


def test_unknown_parts_are_named():
    assert fitted().unknown("a zebra") == ["z", "e", "r"]
    assert fitted().unknown("cab") == []


def test_a_vocabulary_for_more_data_than_there_is_gets_a_warning():
    field = Text(tokeniser=BpeTokeniser(vocab_size=8000))
    field.fit(TEXTS)
    (warning,) = field.warnings(3)
    assert f"the data yields {field.tokeniser.size} pieces, not vocab_size=8,000" in warning
    assert fitted().warnings(3) == []


def test_a_vocabulary_without_words_gets_a_warning():
    field = Text(tokeniser=WordTokeniser(min_frequency=2))
    field.fit(["1", "2", "3"])
    assert field.learned() == "4 pieces (word)"
    (warning,) = field.warnings(3)
    assert "the vocabulary has no words, only special tokens" in warning
