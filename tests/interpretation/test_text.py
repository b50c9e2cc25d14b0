"""Attention drawn with characters."""

import pytest
import torch

from saccade.interpretation import align, draw_attention, pharaoh


def test_characters_stand_above_their_columns() -> None:
    weights = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.5, 0.24]])
    assert draw_attention(weights, ["a", " ", "b"], ["x", "</s>"], width=80) == "  a␣b\nx █\n∎  ▒░"


def test_words_are_written_downwards() -> None:
    drawn = draw_attention(torch.eye(2), ["der", "Hut"], ["the", "hat"], width=80)
    assert drawn == "    dH\n    eu\n    rt\nthe █\nhat  █"


def test_wide_characters_keep_their_columns() -> None:
    lines = draw_attention(torch.eye(2), ["年", "2"], ["a", "b"], width=80).splitlines()
    assert lines == ["  年2", "a ██", "b   ██"]


def test_what_is_too_wide_continues_below() -> None:
    blocks = draw_attention(torch.ones(2, 7), list("abcdefg"), ["x", "y"], width=5).split("\n\n")
    assert [block.splitlines()[0].strip() for block in blocks] == ["abc", "def", "g"]
    assert all(len(line) <= 5 for block in blocks for line in block.splitlines())


def test_wrong_shape_is_named() -> None:
    with pytest.raises(ValueError, match=r"\(2, 3\), got \(3, 2\)"):
        draw_attention(torch.ones(3, 2), list("abc"), list("xy"))


def test_alignment() -> None:
    weights = torch.tensor([[0.1, 0.9], [0.6, 0.4], [0.0, 0.0]])
    assert align(weights) == [(1, 0), (0, 1)]
    assert pharaoh(align(weights)) == "1-0 0-1"
    assert align(torch.zeros(0, 3)) == []
