"""Figures of answers, worked out by hand."""

import pytest

from saccade.evaluation.spans import score_spans


def figures(found, wanted):
    return {name: figure.value for name, figure in score_spans(found, wanted, ["exact_match", "f1"]).items()}


def test_case_punctuation_and_articles_do_not_count():
    assert figures(["The Eiffel-Tower!"], [["eiffeltower"]]) == {"exact_match": 100.0, "f1": 100.0}


def test_shared_words_count():
    # 2 shared of 3 found and 4 wanted: 2 * 2 / 7.
    found = figures(["red blue green"], [["blue red black white"]])
    assert found == {"exact_match": 0.0, "f1": pytest.approx(400 / 7)}
    assert figures(["red red"], [["red"]])["f1"] == pytest.approx(200 / 3)


def test_the_nearest_right_answer_counts():
    found = figures(["red", "blue"], [["green", "red"], ["blue one"]])
    assert found == {"exact_match": 50.0, "f1": pytest.approx((100 + 200 / 3) / 2)}


def test_no_answer_is_an_answer():
    assert figures(["", "red", ""], [[], [], ["red"]]) == {
        "exact_match": pytest.approx(100 / 3),
        "f1": pytest.approx(100 / 3),
    }
