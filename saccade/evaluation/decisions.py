"""Whether decisions are right, over all classes."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def macro_f1(found: NDArray[np.bool_], true: NDArray[np.bool_]) -> float:
    """The mean F1 of the classes that occur in either; (examples, classes) each."""
    hits, either = (found & true).sum(0), found.sum(0) + true.sum(0)
    occurring = either > 0
    return float((2.0 * hits[occurring] / either[occurring]).mean()) if occurring.any() else 0.0


def micro_f1(found: NDArray[np.bool_], true: NDArray[np.bool_]) -> float:
    """F1 over all decisions together."""
    either = int(found.sum() + true.sum())
    return 2.0 * float((found & true).sum()) / either if either else 0.0


def quadratic_weighted_kappa(found: NDArray[np.int64], true: NDArray[np.int64]) -> float:
    r"""The agreement of two gradings beyond chance, where a distance of two grades counts four times that of one.

    .. math:: \kappa = 1 - \frac{\sum_i (a_i - b_i)^2}{\frac{1}{n} \sum_i \sum_j (a_i - b_j)^2}

    NaN if both give the same grade to every example.

    Shapes:
        found, true (examples,): the grades a and b.

    Reference:
        Cohen (1968), Psychological Bulletin 70(4).
    """
    a, b = (grades.astype(np.float64) - true[0] for grades in (found, true))  # any origin will do
    chance = float((a**2).mean() + (b**2).mean() - 2.0 * a.mean() * b.mean())
    return 1.0 - float(((a - b) ** 2).mean()) / chance if chance > 0.0 else math.nan


def share_right(found: NDArray[np.bool_], true: NDArray[np.bool_]) -> float:
    """The share of the true cases of a class that are found, mean of the classes that have some; (cases, classes)."""
    hits, cases = (found & true).sum(0), true.sum(0)
    occurring = cases > 0
    return float((hits[occurring] / cases[occurring]).mean()) if occurring.any() else math.nan
