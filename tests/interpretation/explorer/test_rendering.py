"""The same items in every form."""

import json
import unicodedata

import pytest
import torch

from saccade.interpretation.explorer import FORMATS, Item, Map, Measure, TextAxis, render
from saccade.interpretation.explorer.rendering import merged
from tests.interpretation.explorer.examples import translation


def test_words_are_merged_as_a_loop_would() -> None:
    each = translation().maps[2]
    weights, source, target = merged(each)
    assert source == ["[CLS]", "unbelievable", "luck", ".", "[SEP]"]
    assert target == ["ein", "Glück", "sondergleichen", "</s>"]
    mean = each.weights.mean(dim=0)
    expected = sum(mean[row, col] for row in (2, 3) for col in (1, 2, 3)) / 2
    assert weights[2, 1] == pytest.approx(expected.item(), abs=1e-6)
    assert torch.allclose(weights.sum(dim=-1), torch.ones(4), atol=1e-6)


def test_text() -> None:
    text = render([translation()], "text", width=60).decode()
    assert "cross, mean of 3 heads" in text
    assert "sondergleichen " in text
    assert "AER  0.25\n    How many links are wrong. Less is better." in text


def test_no_text_gives_orders_to_the_terminal() -> None:
    three = TextAxis(pieces=["a", "\x1b[31mb", "c"])
    each = Map(name="layer\x9b2J", weights=torch.eye(3)[None], queries=three, keys=three)
    measure = Measure(name="output\x07", value="\x1b]0;owned\x07", meaning="One.\x7f Two.")
    text = render([Item(title="\x1b[2Jé\rtitle\n", maps=[each], measures=[measure])], "text", width=40).decode()
    assert not [c for c in text if unicodedata.category(c) == "Cc" and c != "\n"]
    assert text.startswith("␛[2Jé␍title␊\n\n")
    assert "layer\\x9b2J\n" in text
    assert "output␇  ␛]0;owned␇\n    One.␡ Two." in text


def test_json_holds_every_head() -> None:
    item = translation()
    data = json.loads(render([item], "json", title="One"))
    assert data["title"] == "One"
    first = data["items"][0]
    assert torch.allclose(torch.tensor(first["maps"][2]["weights"]), item.maps[2].weights)
    assert first["maps"][2]["queries"]["pieces"] == list(item.maps[2].queries.pieces)
    assert first["measures"][0]["name"] == "AER"
    assert first["links"] == [[0, 2], [1, 1]]


@pytest.mark.parametrize(("format", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("html", b"<!doctype html>")])
def test_files(format, start) -> None:
    pytest.importorskip("matplotlib")
    assert render([translation()], format).startswith(start)


def test_unknown_format() -> None:
    assert FORMATS == ("html", "text", "png", "svg", "json")
    with pytest.raises(ValueError, match="html, text, png, svg, json, got 'pdf'"):
        render([translation()], "pdf")
    with pytest.raises(ValueError, match="no items"):
        render([], "text")
