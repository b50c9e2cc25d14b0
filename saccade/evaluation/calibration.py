"""Whether probabilities match how often answers are right."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

BINS = 15


class Bin(NamedTuple):
    """The answers whose confidence is in one interval."""

    low: float
    high: float
    answers: int
    confidence: float
    """Their mean confidence; NaN without answers."""
    accuracy: float
    """The share of them that is right; NaN without answers."""


def reliability(confidence: NDArray[np.float64], right: NDArray[np.bool_], bins: int = BINS) -> list[Bin]:
    """The answers in bins of equal width by their confidence: in each, confidence and accuracy should be equal.

    Args:
        confidence: of each answer, from 0 to 1.
        right: whether each answer is right.
        bins: how many there are from 0 to 1; one that ends where the next begins does not include its end.
    """
    places = np.minimum((confidence * bins).astype(int), bins - 1)
    found = []
    for place in range(bins):
        inside = places == place
        count = int(inside.sum())
        means = (float(side[inside].mean()) if count else math.nan for side in (confidence, right))
        found.append(Bin(place / bins, (place + 1) / bins, count, *means))
    return found


def calibration_error(bins: list[Bin]) -> float:
    r"""The expected calibration error: the mean gap between confidence and accuracy.

    .. math:: \mathrm{ECE} = \sum_b \frac{n_b}{n} \, |\mathrm{acc}(b) - \mathrm{conf}(b)|

    Reference:
        Guo et al. (2017), arXiv:1706.04599, equation 5.
    """
    filled = [each for each in bins if each.answers]
    total = sum(each.answers for each in filled)
    return sum(each.answers * abs(each.accuracy - each.confidence) for each in filled) / total if total else math.nan
