"""One text, or a pair of texts, as BERT reads them."""

from pathlib import Path

import pytest
import torch

from saccade.data.cell import Cell
from saccade.data.errors import BadRow
from saccade.fields import WordPieces, fields
from saccade.fields.wordpieces import lengths_kept

CELL = Cell("pairs.csv", 7, "text", Path())
TEXTS = ["the lowest tower", "a new low, a lower tower", "newest"] * 3


def fitted(**arguments) -> WordPieces:
    field = WordPieces(vocab_size=61, **arguments)
    field.fit(TEXTS)
    return field


def names(field, encoded):
    return field.tokeniser.pieces(encoded["ids"])


def test_reachable_by_short_name():
    assert fields.get("wordpieces") is WordPieces


def test_cells_are_one_text_or_two():
    assert WordPieces().read("a b", CELL) == WordPieces().read(["a b"], CELL) == "a b"
    assert WordPieces().read(("a", "b"), CELL) == ["a", "b"]
    with pytest.raises(BadRow, match="has 3 parts"):
        WordPieces().read(["a", "b", "c"], CELL)
    with pytest.raises(BadRow, match="the text is empty"):
        WordPieces().read(["a", ""], CELL)


def test_special_tokens_stand_around_texts():
    field = fitted()
    one = field.encode("low")
    assert names(field, one)[0] == "[CLS]"
    assert names(field, one)[-1] == "[SEP]"
    assert one["first"] == len(one["ids"]) == field.size(one)
    pair = field.encode(["low", "new tower"])
    second = field.tokeniser.encode("new tower")
    assert pair["ids"] == [*one["ids"], *second, field.tokeniser.special("[SEP]")]
    assert pair["first"] == one["first"]


def test_batches_have_masks_and_segments():
    field = fitted()
    values = ["low", ["tower", "new low"], ["a", "a"]]
    encoded = [field.encode(value) for value in values]
    batch = field.pad(encoded)
    assert list(batch) == ["values", "mask", "segments"]
    for row, each in enumerate(encoded):
        length, first = len(each["ids"]), each["first"]
        assert batch["values"][row, :length].tolist() == each["ids"]
        assert set(batch["values"][row, length:].tolist()) <= {field.tokeniser.special("[PAD]")}
        assert batch["mask"][row].tolist() == [place < length for place in range(batch["mask"].shape[1])]
        assert batch["segments"][row].tolist() == [
            int(first <= place < length) for place in range(batch["mask"].shape[1])
        ]


def one_by_one(lengths, most):
    """What the paper's code does: it takes a token from the longer text until the rest fits."""
    left = list(lengths)
    while sum(left) > most:
        left[0 if left[0] > left[1] else 1] -= 1
    return left


@pytest.mark.parametrize("most", [2, 7, 11])
def test_the_longer_text_is_cut_first(most):
    for one in range(14):
        for other in range(14):
            assert lengths_kept([one, other], most) == one_by_one([one, other], most)
    assert lengths_kept([13], most) == [most]
    assert lengths_kept([1], most) == [1]


def test_positions_of_words():
    field = fitted(max_length=12)
    text = "Lowest,  tower low"
    pieces = field.axis(text).pieces
    spelled = ["".join(pieces[place].removeprefix("##") for place in word) for word in field.words(text)]
    assert spelled == ["lowest,", "tower", "low"]
    assert field.words(["low", "tower"]) == []


@pytest.mark.parametrize(
    ("cut", "kept"), [("end", range(8)), ("middle", [0, 1, *range(7, 13)]), ("start", range(5, 13))]
)
def test_what_is_cut_of_a_long_text(cut, kept):
    field = fitted(max_length=10, cut=cut)
    ids = field.tokeniser.encode("low " * 13)
    assert len(ids) == 13
    numbered = list(range(100, 113))
    assert field.assemble(numbered)["ids"][1:-1] == [100 + place for place in kept]
    assert field.truncated(field.encode("low " * 13)) == "more than max_length=10 tokens"
    assert field.truncated(field.encode("low " * 8)) is None
    assert len(field.axis("low " * 13)) == 10


def test_the_explorer_sees_words_and_special_tokens():
    field = fitted()
    axis = field.axis(["Lowest,  tower", "newest"])
    assert axis.pieces == field.tokeniser.pieces(field.encode(["Lowest,  tower", "newest"])["ids"])
    assert [axis.pieces[place] for place in axis.special] == ["[CLS]", "[SEP]", "[SEP]"]
    spelt = ["".join(axis.pieces[place].removeprefix("##") for place in word) for word in axis.words]
    assert spelt == ["lowest,", "tower", "newest"]
    assert field.show(["a", "b"]) == "a | b"


@pytest.mark.parametrize(
    "text", ["Lowest, tower  newest", "low", " a\tlow ", "low \u200b tower", "\u200b low", "☃ low ☃☃", ""]
)
def test_each_word_has_a_first_piece(text):
    field = fitted()
    starts = field.word_starts(text)
    assert len(starts) == len(text.split())
    pieces = field.tokeniser.pieces(field.encode(text)["ids"])
    for start, word in zip(starts, text.split(), strict=True):
        if word.isprintable():
            assert word.lower().startswith(pieces[start]) or pieces[start] == "[UNK]"
        else:
            assert 0 <= start < len(pieces) - 1


def test_only_words_that_are_read_have_a_place():
    field = fitted(max_length=5)
    assert len(field.word_starts("a a a a a a")) == 3
    field.pairs = False
    assert field.read(["a", "low"], CELL) == "a low"


def test_unknown_words_are_named():
    assert fitted().unknown(["low ☃ tower", "Ж"]) == ["☃", "Ж"]
    assert "pieces" in fitted().learned()


def test_what_was_learned_is_saved_loaded_and_adopted(tmp_path):
    field = fitted()
    field.save(tmp_path)
    other, adopting = WordPieces(), WordPieces()
    other.load(tmp_path)
    assert adopting.adopt(tmp_path)
    assert not WordPieces().adopt(tmp_path / "elsewhere")
    adopting.fit(["something else entirely"])
    assert field.sizes() == other.sizes() == adopting.sizes() == {"vocab": field.tokeniser.size}
    assert other.encode(TEXTS[0]) == adopting.encode(TEXTS[0]) == field.encode(TEXTS[0])


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="max_length"):
        WordPieces(max_length=4)
    with pytest.raises(ValueError, match="cut"):
        WordPieces(cut="front")


def test_padding_does_not_depend_on_special_names_in_texts():
    field = fitted()
    batch = field.pad([field.encode("low [PAD] low"), field.encode("low")])
    assert torch.equal(batch["mask"].sum(1), torch.tensor([5, 3]))
