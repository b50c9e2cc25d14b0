"""Metrics of numbers, against their definitions written out."""

import itertools
import math

import numpy as np
import pytest

from saccade.evaluation.numbers import METRICS, pairwise_accuracy, score_numbers

GENERATOR = np.random.default_rng(5)
WANTED = GENERATOR.normal(3.0, 2.0, 60).round(1)  # with ties
PREDICTED = (0.6 * WANTED + GENERATOR.normal(0.0, 1.0, 60)).round(1)


def ranks(values):
    return [sum(o < v for o in values) + (sum(o == v for o in values) + 1) / 2 for v in values]


def order(predicted, wanted):
    right = pairs = 0
    for (a, x), (b, y) in itertools.combinations(zip(predicted, wanted, strict=True), 2):
        if x != y:
            pairs += 1
            right += 0.5 if a == b else float((a > b) == (x > y))
    return 100.0 * right / pairs


def expected(name):
    errors = [p - w for p, w in zip(PREDICTED, WANTED, strict=True)]
    squared = sum(e * e for e in errors) / len(errors)
    variance = sum((w - WANTED.mean()) ** 2 for w in WANTED) / len(WANTED)
    return {
        "mse": lambda: squared,
        "rmse": lambda: squared**0.5,
        "mae": lambda: sum(map(abs, errors)) / len(errors),
        "r2": lambda: 1.0 - squared / variance,
        "pearson": lambda: np.corrcoef(PREDICTED, WANTED)[0, 1],
        "spearman": lambda: np.corrcoef(ranks(PREDICTED), ranks(WANTED))[0, 1],
        "pairwise_accuracy": lambda: order(PREDICTED, WANTED),
    }[name]()


@pytest.mark.parametrize("name", METRICS)
def test_equals_its_definition(name) -> None:
    found = score_numbers(PREDICTED.tolist(), WANTED.tolist(), [name])
    assert found[name].value == pytest.approx(expected(name), abs=1e-12)


def test_metrics_without_meaning_are_nan() -> None:
    constant = score_numbers([1.0, 2.0], [3.0, 3.0], ["r2", "pearson", "spearman", "pairwise_accuracy"])
    assert all(math.isnan(figure.value) for figure in constant.values())


def test_a_perfect_order_and_its_reverse() -> None:
    values = np.arange(7.0)
    assert pairwise_accuracy(values**3, values) == 1.0
    assert pairwise_accuracy(-values, values) == 0.0


def test_answers_and_numbers_must_be_as_many() -> None:
    with pytest.raises(ValueError, match="2 answers cannot be compared with 1 numbers"):
        score_numbers([1.0, 2.0], [3.0], ["mse"])
