"""Tokens that a model guesses, and blanks that it fills in."""

import math

import pytest
import torch

from saccade.tasks.guessing import fill_blanks, guesses


def test_guesses_by_hand() -> None:
    logits = torch.tensor([[1.0, 2.0, 0.0], [3.0, 0.0, 0.0]])
    found = guesses(logits, torch.tensor([1, 2])).tolist()
    totals = [math.log(sum(math.exp(each) for each in row)) for row in logits.tolist()]
    assert found[0] == pytest.approx([2.0 - totals[0], 1.0, 1.0])
    assert found[1] == pytest.approx([0.0 - totals[1], 1.0, 0.0])


def filled(texts, numbers):
    probabilities = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.2, 0.6, 0.2]])
    return fill_blanks(
        probabilities.log(),
        torch.tensor(numbers),
        [{"text": text} for text in texts],
        pieces=lambda ids: [f"piece {number}" for number in ids],
        write=lambda number, tokens: f"{number}: {tokens}",
        first=10,
    )


def test_each_text_gets_the_likeliest_tokens_of_its_own_blanks() -> None:
    answers = filled(["a [MASK]", "[MASK] b [MASK]"], [0, 1, 1])
    assert [answer.value for answer in answers] == ["0: [10]", "1: [12, 11]"]
    assert [answer.score for answer in answers] == pytest.approx([math.log(0.5), (math.log(0.7) + math.log(0.6)) / 2])
    assert answers[0].details["blanks"] == [{"piece 10": 0.5, "piece 11": 0.3, "piece 12": 0.2}]
    with pytest.raises(ValueError, match=r"'plain' has no \[MASK\] to fill in"):
        filled(["[MASK]", "plain"], [0, 0, 0])
