"""Areas under curves, decisions at a threshold and their intervals."""

import math

import numpy as np
import pytest

from saccade.evaluation.bootstrap import bootstrap, rows_of
from saccade.evaluation.curves import auroc, average_precision
from saccade.evaluation.labels import Labelled


def drawn(seed: int = 0, count: int = 211):
    draws = np.random.default_rng(seed)
    true = draws.random(count) < 0.3
    scores = np.round(draws.normal(true.astype(float), 1.0), 1)  # with ties
    return scores, true


def test_areas_are_those_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    for seed in range(3):
        scores, true = drawn(seed)
        assert auroc(scores, true) == pytest.approx(metrics.roc_auc_score(true, scores))
        assert average_precision(scores, true) == pytest.approx(metrics.average_precision_score(true, scores))


def test_by_hand() -> None:
    scores, true = np.array([0.9, 0.8, 0.8, 0.1]), np.array([True, False, True, False])
    assert average_precision(scores, true) == pytest.approx(0.5 * 1.0 + 0.5 * 2 / 3)
    assert math.isnan(average_precision(scores, np.zeros(4, dtype=bool)))


def test_a_class_that_is_looked_for() -> None:
    yes = [0.9, 0.6, 0.4, 0.2]
    predicted = ["yes" if p >= 0.3 else "no" for p in yes]
    wanted = ["yes", "no", "yes", "no"]
    found = Labelled.of(predicted, wanted, [[1 - p, p] for p in yes], ["no", "yes"], positive="yes")
    figures = found.figures(["sensitivity", "specificity", "auprc", "auroc"])
    assert figures["sensitivity"].value == 100.0
    assert figures["specificity"].value == 50.0
    assert figures["auroc"].value == 75.0
    assert figures["auprc"].value == pytest.approx(100 * (0.5 + 0.5 * 2 / 3))
    filled = [(b.confidence, b.accuracy) for b in found.reliability() if b.answers]
    assert filled == [(0.2, 0.0), (0.4, 1.0), (0.6, 0.0), (0.9, 1.0)]  # of "yes", not of the answers


def test_sensitivity_of_several_labels_is_a_mean() -> None:
    found = Labelled.of([["a"], []], [["a", "b"], ["b"]], [[0.9, 0.1]] * 2, ["a", "b"], several=True)
    assert found.figures(["sensitivity"])["sensitivity"].value == 50.0


def test_intervals_hold_the_figure_and_shrink_with_more_examples() -> None:
    widths = []
    for count in (101, 1009):
        scores, true = drawn(count=count)
        low, high = bootstrap(lambda rows, s=scores, t=true: {"auroc": auroc(s[rows], t[rows])}, count, 200)["auroc"]
        assert low < auroc(scores, true) < high
        widths.append(high - low)
    assert widths[1] < 0.6 * widths[0]
    assert bootstrap(lambda rows: {"x": math.nan}, 5, 3) == {}
    with pytest.raises(ValueError, match="bootstrap"):
        bootstrap(lambda rows: {}, 5, 0)


def test_the_interval_of_a_mean_is_that_of_its_standard_error() -> None:
    numbers = np.random.default_rng(1).normal(size=401)
    low, high = bootstrap(lambda rows: {"mean": float(numbers[rows].mean())}, len(numbers), 2000)["mean"]
    assert (high - low) / 2 == pytest.approx(1.96 * numbers.std() / math.sqrt(401), rel=0.08)


def test_rows_of_whole_examples() -> None:
    assert rows_of([2, 0, 3], np.array([2, 0, 2, 1])).tolist() == [2, 3, 4, 0, 1, 2, 3, 4]
