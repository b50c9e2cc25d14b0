"""Metrics of predicted numbers."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from saccade.evaluation.figures import Figure

Numbers = NDArray[np.float64]


def mse(predicted: Numbers, wanted: Numbers) -> float:
    """The mean squared error."""
    return float(np.mean((predicted - wanted) ** 2))


def rmse(predicted: Numbers, wanted: Numbers) -> float:
    """The root of the mean squared error."""
    return math.sqrt(mse(predicted, wanted))


def mae(predicted: Numbers, wanted: Numbers) -> float:
    """The mean absolute error."""
    return float(np.mean(np.abs(predicted - wanted)))


def r2(predicted: Numbers, wanted: Numbers) -> float:
    """The share of the variance that is explained: 1 - MSE / variance; NaN if all true values are equal."""
    variance = float(np.var(wanted))
    return 1.0 - mse(predicted, wanted) / variance if variance > 0.0 else math.nan


def pearson(predicted: Numbers, wanted: Numbers) -> float:
    """The linear correlation; NaN if either side is constant."""
    one, other = predicted - predicted.mean(), wanted - wanted.mean()
    scale = math.sqrt(float(one @ one) * float(other @ other))
    return float(one @ other) / scale if scale > 0.0 else math.nan


def spearman(predicted: Numbers, wanted: Numbers) -> float:
    """The correlation of the ranks, where ties share their mean rank; NaN if either side is constant."""
    return pearson(_ranks(predicted), _ranks(wanted))


def pairwise_accuracy(predicted: Numbers, wanted: Numbers) -> float:
    """The share of pairs with different true values that are in the right order; equal predictions count half.

    NaN if all true values are equal.
    """
    lower: list[float] = []  # predictions of examples with a lower true value, sorted
    right, pairs = 0.0, 0
    order = sorted(zip(wanted.tolist(), predicted.tolist(), strict=True))
    for _, group in groupby(order, key=lambda pair: pair[0]):
        found = [value for _, value in group]
        right += sum(bisect_left(lower, value) + bisect_right(lower, value) for value in found) / 2.0
        pairs += len(found) * len(lower)
        for value in found:
            insort(lower, value)
    return right / pairs if pairs else math.nan


METRICS: dict[str, tuple[Callable[[Numbers, Numbers], float], bool, str]] = {
    "mse": (mse, False, "mean squared error"),
    "rmse": (rmse, False, "root mean squared error, in the unit of the data"),
    "mae": (mae, False, "mean absolute error, in the unit of the data"),
    "r2": (r2, True, "share of the variance explained"),
    "pearson": (pearson, True, "linear correlation"),
    "spearman": (spearman, True, "rank correlation"),
    "pairwise_accuracy": (
        lambda predicted, wanted: 100.0 * pairwise_accuracy(predicted, wanted),
        True,
        "% of pairs in the right order, ties counting half",
    ),
}
"""Each metric, whether higher is better, and its definition."""

HIGHER_IS_BETTER = {name: higher for name, (_, higher, _) in METRICS.items()}


def score_numbers(predicted: Sequence[float], wanted: Sequence[float], metrics: Sequence[str]) -> dict[str, Figure]:
    """Computes several metrics of the same answers.

    Args:
        predicted: a number for each example.
        wanted: the true numbers.
        metrics: names from `METRICS`.
    """
    if len(predicted) != len(wanted) or not wanted:
        raise ValueError(f"{len(predicted)} answers cannot be compared with {len(wanted)} numbers.")
    sides = [np.asarray(side, dtype=np.float64) for side in (predicted, wanted)]
    return {name: Figure(METRICS[name][0](*sides), METRICS[name][2]) for name in metrics}


def _ranks(values: Numbers) -> Numbers:
    order = np.sort(values)
    ranks: Numbers = (np.searchsorted(order, values, "left") + np.searchsorted(order, values, "right") + 1) / 2.0
    return ranks
