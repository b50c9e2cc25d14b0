"""Areas under curves: how well scores rank positive examples above negative ones."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray


def auroc(scores: NDArray[np.float64], true: NDArray[np.bool_]) -> float:
    """The probability that a positive example scores above a negative one, ties counting half; NaN without both."""
    positive = int(true.sum())
    negative = len(true) - positive
    if not positive or not negative:
        return math.nan
    order = np.sort(scores)
    ranks = (np.searchsorted(order, scores, "left") + np.searchsorted(order, scores, "right") + 1) / 2.0
    return float((ranks[true].sum() - positive * (positive + 1) / 2.0) / (positive * negative))


def average_precision(scores: NDArray[np.float64], true: NDArray[np.bool_]) -> float:
    r"""The area under the precision-recall curve, without interpolation; NaN without positive examples.

    .. math:: \sum_n (R_n - R_{n-1}) P_n

    P_n and R_n are precision and recall of the examples with the n highest different scores.
    """
    positive = int(true.sum())
    if not positive:
        return math.nan
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(true[order])
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)  # equal scores count together
    precision, recall = hits[last] / (last + 1), hits[last] / positive
    return float((np.diff(recall, prepend=0.0) * precision).sum())


def mean_of_classes(
    area: Callable[[NDArray[np.float64], NDArray[np.bool_]], float],
    probabilities: NDArray[np.float64],
    true: NDArray[np.bool_],
) -> float:
    """The mean area of all classes, each against the rest; those for which it is not defined are ignored."""
    areas = [area(probabilities[:, k], true[:, k]) for k in range(true.shape[1])]
    known = [found for found in areas if not math.isnan(found)]
    return float(np.mean(known)) if known else math.nan
