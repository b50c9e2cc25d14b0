"""Figures of captions, and of where a model looks."""

import random

import pytest

from saccade.evaluation import METRICS, score_texts
from saccade.evaluation.captions import words_of
from saccade.evaluation.edits import common_length

NAMES = ["bleu_1", "bleu_2", "bleu_3", "bleu_4", "rouge_l", "cider", "distinct_1", "distinct_2"]
WANTED = [["a brown dog runs on the grass", "the dog is running"], "two men play a guitar in the park", ["a red bus"]]


def test_a_right_caption_scores_highest_and_a_wrong_one_lowest() -> None:
    right = score_texts(["A brown dog runs, on the grass.", WANTED[1], "a red bus!"], WANTED, NAMES)
    assert [right[f"bleu_{n}"].value for n in range(1, 5)] == pytest.approx([100.0] * 4)
    assert right["rouge_l"].value == pytest.approx(100.0)
    wrong = score_texts(["x y z w v"] * 3, WANTED, NAMES)
    assert all(wrong[name].value < 1e-3 for name in NAMES[:6])
    assert right["cider"].value > 300.0
    assert wrong["distinct_1"].value == pytest.approx(100 * 5 / 15)
    assert wrong["distinct_2"].value == pytest.approx(100 * 4 / 12)
    assert all(METRICS[name](["a"], ["a"]).signature for name in NAMES)


def test_any_of_several_references_may_be_met() -> None:
    one = score_texts(["the dog is running", "x", "a red bus"], WANTED, ["bleu_4", "rouge_l"])
    other = score_texts(["a brown dog runs on the grass", "x", "a red bus"], WANTED, ["bleu_4", "rouge_l"])
    assert one["rouge_l"].value == pytest.approx(other["rouge_l"].value)


def test_empty_captions_are_no_error() -> None:
    figures = score_texts(["", "", ""], WANTED, NAMES)
    assert all(figure.value == pytest.approx(0.0, abs=1e-4) for figure in figures.values())


def test_words_are_lower_case_and_without_punctuation() -> None:
    assert words_of("A dog's T-shirt, (isn't it?) 2 cats…") == ["a", "dog's", "t-shirt", "isn't", "it", "2", "cats"]


def test_the_common_subsequence_is_the_longest() -> None:
    choices = random.Random(0)
    for _ in range(200):
        first, second = (choices.choices("abc", k=choices.randint(0, 12)) for _ in range(2))
        table = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
        for i, a in enumerate(first):
            for j, b in enumerate(second):
                table[i + 1][j + 1] = table[i][j] + 1 if a == b else max(table[i][j + 1], table[i + 1][j])
        assert common_length(first, second) == table[-1][-1]
