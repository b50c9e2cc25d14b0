"""Metrics of predicted labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from saccade.evaluation.figures import Figure

HIGHER_IS_BETTER: dict[str, bool] = {
    "accuracy": True,
    "macro_f1": True,
    "micro_f1": True,
    "auroc": True,
    "ece": False,
    "mean_absolute_error": False,
}

BINS = 15
"""Number of bins of the calibration error."""

Form = Literal["one", "several", "ordered"]


def score_labels(
    predicted: Sequence[Any],
    wanted: Sequence[Any],
    probabilities: Sequence[Sequence[float]],
    names: Sequence[str],
    metrics: Sequence[str],
    *,
    form: Form,
) -> dict[str, Figure]:
    """Computes several metrics of the same answers.

    Args:
        predicted: a label for each example, or a list of labels.
        wanted: the true labels.
        probabilities: the probability of each class, for each example.
        names: the names of the classes.
        metrics: names from `HIGHER_IS_BETTER`.
        form: whether there is one label, several, or one on a scale.
    """
    if len(predicted) != len(wanted) or not wanted:
        raise ValueError(f"{len(predicted)} answers cannot be compared with {len(wanted)} labels.")
    found, true = (indicators(side, names) for side in (predicted, wanted))
    p = np.asarray(probabilities, dtype=np.float64).reshape(len(wanted), len(names))
    figures = {
        "accuracy": lambda: Figure(100.0 * float((found == true).all(1).mean()), "% of examples with the right label"),
        "macro_f1": lambda: Figure(100.0 * macro_f1(found, true), "F1 in %, mean of the classes"),
        "micro_f1": lambda: Figure(100.0 * micro_f1(found, true), "F1 in %, over all decisions"),
        "auroc": lambda: Figure(100.0 * macro_auroc(p, true), "area under ROC in %, each class against the rest, mean"),
        "ece": lambda: Figure(
            100.0 * calibration_error(p, true, form), f"expected calibration error in %, {BINS} bins"
        ),
        "mean_absolute_error": lambda: Figure(
            float(np.abs(found.argmax(1) - true.argmax(1)).mean()), "mean distance in grades"
        ),
    }
    return {name: figures[name]() for name in metrics}


def macro_f1(found: NDArray[np.bool_], true: NDArray[np.bool_]) -> float:
    """The mean F1 of the classes that occur in either; (examples, classes) each."""
    hits, either = (found & true).sum(0), found.sum(0) + true.sum(0)
    occurring = either > 0
    return float((2.0 * hits[occurring] / either[occurring]).mean()) if occurring.any() else 0.0


def micro_f1(found: NDArray[np.bool_], true: NDArray[np.bool_]) -> float:
    """F1 over all decisions together."""
    either = int(found.sum() + true.sum())
    return 2.0 * float((found & true).sum()) / either if either else 0.0


def auroc(scores: NDArray[np.float64], true: NDArray[np.bool_]) -> float:
    """The probability that a positive example scores above a negative one, ties counting half; NaN without both."""
    positive = int(true.sum())
    negative = len(true) - positive
    if not positive or not negative:
        return math.nan
    order = np.sort(scores)
    ranks = (np.searchsorted(order, scores, "left") + np.searchsorted(order, scores, "right") + 1) / 2.0
    return float((ranks[true].sum() - positive * (positive + 1) / 2.0) / (positive * negative))


def macro_auroc(probabilities: NDArray[np.float64], true: NDArray[np.bool_]) -> float:
    """The mean area under the ROC curve, each class against the rest; classes without both kinds are ignored."""
    areas = [auroc(probabilities[:, k], true[:, k]) for k in range(true.shape[1])]
    known = [area for area in areas if not math.isnan(area)]
    return float(np.mean(known)) if known else math.nan


def calibration_error(probabilities: NDArray[np.float64], true: NDArray[np.bool_], form: Form) -> float:
    """The difference between confidence and accuracy, averaged over equal-width bins weighted by their examples."""
    if form == "several":
        confidence = np.maximum(probabilities, 1.0 - probabilities).ravel()
        right = ((probabilities >= 0.5) == true).ravel()
    else:
        confidence = probabilities.max(1)
        right = true[np.arange(len(true)), probabilities.argmax(1)]
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    found = [bins == b for b in range(BINS) if (bins == b).any()]
    return float(sum(abs(confidence[b].mean() - right[b].mean()) * b.mean() for b in found))


def indicators(labels: Sequence[Any], names: Sequence[str]) -> NDArray[np.bool_]:
    """(examples, classes): True where an example has a class."""
    places = {name: place for place, name in enumerate(names)}
    found = np.zeros((len(labels), len(names)), dtype=bool)
    for row, label in enumerate(labels):
        for name in [label] if isinstance(label, str) else label:
            found[row, places[name]] = True
    return found
