"""What cannot be shown is refused with the reason."""

import pytest
import torch

from saccade.interpretation.explorer import ImageAxis, Item, Map, Measure, TextAxis
from tests.interpretation.explorer.examples import png

THREE = TextAxis(pieces=["a", "b", "c"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"words": [[0, 3]]}, "words refers to piece 3, but there are 3 pieces"),
        ({"words": [[0], [0, 1]]}, "words refers to piece 0 twice"),
        ({"sentences": [[0], []]}, "sentences contains an empty group"),
        ({"special": [-1]}, "special refers to piece -1"),
        ({"gold": [3]}, "gold refers to piece 3, but there are 3 pieces"),
    ],
)
def test_wrong_places(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        TextAxis(pieces=["a", "b", "c"], **arguments)


def test_pieces_are_a_list_of_strings() -> None:
    with pytest.raises(TypeError, match="list of strings, got 'abc'"):
        TextAxis(pieces="abc")
    with pytest.raises(TypeError, match="list of strings"):
        TextAxis(pieces=["a", 5])


def test_image_axis() -> None:
    axis = ImageAxis(png=png(), grid=(2, 3), leading=["[CLS]"])
    assert len(axis) == 7
    assert axis.names == ["[CLS]", "1,1", "1,2", "1,3", "2,1", "2,2", "2,3"]
    with pytest.raises(ValueError, match="PNG"):
        ImageAxis(png=b"GIF89a", grid=(2, 3))
    with pytest.raises(ValueError, match="grid"):
        ImageAxis(png=png(), grid=(0, 3))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (torch.zeros(2, 3, 4), r"\(heads, 3, 3\), got \(2, 3, 4\)"),
        (torch.zeros(3, 3), r"got \(3, 3\)"),
        (torch.zeros(0, 3, 3), "no heads"),
        (torch.full((2, 3, 3), float("nan")), "head 0, must be finite"),
        (-torch.eye(3)[None], "not negative"),
    ],
)
def test_wrong_weights(weights, message) -> None:
    with pytest.raises(ValueError, match=message):
        Map(name="layer", weights=weights, queries=THREE, keys=THREE)


@pytest.mark.parametrize(("rows", "picked"), [(1, [0, 3]), (1, [-1]), (3, [0])])
def test_wrong_picks(rows, picked) -> None:
    queries = TextAxis(pieces=["x"] * rows)
    with pytest.raises(ValueError, match="picked of 'm' names columns of a map with one row, from 0 to 2"):
        Map(name="m", weights=torch.ones(1, rows, 3), queries=queries, keys=THREE, picked=picked)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_measure_that_json_cannot_say(value) -> None:
    with pytest.raises(ValueError, match=r"'AER' must be finite, got (nan|inf)"):
        Measure(name="AER", value=value, meaning="Wrong links. And missing ones.")


def test_an_item_has_something_to_show() -> None:
    with pytest.raises(ValueError, match="'nothing' has no maps"):
        Item(title="nothing", maps=[])


class Encoding:
    """What a fast tokeniser returns for two texts in one row."""

    is_fast = True

    def tokens(self, row):
        return ["[CLS]", "un", "##do", "[SEP]", "go", "[SEP]"]

    def word_ids(self, row):
        return [None, 0, 0, None, 0, None]

    def sequence_ids(self, row):
        return [None, 0, 0, None, 1, None]


def test_an_axis_from_what_a_tokeniser_returned() -> None:
    axis = TextAxis.from_encoding(Encoding())
    assert axis.pieces == ["[CLS]", "un", "##do", "[SEP]", "go", "[SEP]"]
    assert axis.words == [[1, 2], [4]]  # words are counted anew in the second text
    assert axis.special == [0, 3, 5]
    with pytest.raises(TypeError, match=r"fast tokeniser, got dict"):
        TextAxis.from_encoding({"input_ids": [1]})
