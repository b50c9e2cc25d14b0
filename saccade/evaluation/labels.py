"""Metrics of predicted labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saccade.evaluation.calibration import BINS, Bin, calibration_error, reliability
from saccade.evaluation.curves import auroc, average_precision, mean_of_classes
from saccade.evaluation.decisions import macro_f1, micro_f1, quadratic_weighted_kappa, share_right
from saccade.evaluation.figures import Figure
from saccade.evaluation.tables import Table

MOST_PRINTED = 12
"""The maximum number of classes of a confusion matrix that is printed."""

MOST_COUNTED = 1000
"""The maximum number of classes of a confusion matrix that is written at all."""


class Labelled(NamedTuple):
    """Predicted labels with the true ones."""

    found: NDArray[np.bool_]
    """(examples, classes): which are predicted."""
    true: NDArray[np.bool_]
    """(examples, classes): which are right."""
    probabilities: NDArray[np.float64]
    """(examples, classes)."""
    names: list[str]
    several: bool = False
    """Whether an example can have any number of labels."""
    positive: int | None = None
    """With two classes, the index of the positive one."""

    @staticmethod
    def of(
        predicted: Sequence[Any],
        wanted: Sequence[Any],
        probabilities: Sequence[Sequence[float]],
        names: Sequence[str],
        *,
        several: bool = False,
        positive: str | None = None,
    ) -> Labelled:
        """Answers as arrays.

        Args:
            predicted: a label for each example, or a list of labels.
            wanted: the true labels.
            probabilities: the probability of each class, for each example.
            names: the names of the classes.
            several: whether an example can have any number of labels.
            positive: of two classes, the one to detect.
        """
        if len(predicted) != len(wanted) or not wanted:
            raise ValueError(f"{len(predicted)} answers cannot be compared with {len(wanted)} labels.")
        p = np.asarray(probabilities, dtype=np.float64).reshape(len(wanted), len(names))
        looked_for = list(names).index(positive) if positive is not None and positive in names else None
        return Labelled(indicators(predicted, names), indicators(wanted, names), p, list(names), several, looked_for)

    def take(self, rows: NDArray[np.int64]) -> Labelled:
        """Some examples, each as often as it is named."""
        return self._replace(found=self.found[rows], true=self.true[rows], probabilities=self.probabilities[rows])

    def asked(self, side: NDArray[Any]) -> NDArray[Any]:
        """The column of the positive class, from (examples, classes); all columns without one."""
        return side if self.positive is None else side[:, [self.positive]]

    def figures(self, metrics: Sequence[str]) -> dict[str, Figure]:
        """The values of metrics from `METRICS`."""
        return {name: Figure(METRICS[name].compute(self), METRICS[name].definition) for name in metrics}

    def reliability(self) -> list[Bin]:
        """The answers in bins of their confidence; with several labels, each decision is an answer.

        With a positive class, the bins are those of its probability, and the accuracy is how often it is right.
        """
        if self.positive is not None:
            confidence, right = self.probabilities[:, self.positive], self.true[:, self.positive]
        elif self.several:
            confidence = np.maximum(self.probabilities, 1.0 - self.probabilities).ravel()
            right = ((self.probabilities >= 0.5) == self.true).ravel()
        else:
            confidence = self.probabilities.max(1)
            right = self.true[np.arange(len(self.true)), self.probabilities.argmax(1)]
        return reliability(confidence, right)

    def confusion(self) -> NDArray[np.int64]:
        """(classes, classes): the number of examples with each true class, by row, and each predicted class."""
        counts = np.zeros((len(self.names),) * 2, dtype=np.int64)
        np.add.at(counts, (self.true.argmax(1), self.found.argmax(1)), 1)
        return counts

    def tables(self) -> list[Table]:
        """The confusion matrix of up to 1000 classes, the figures of each class, and the bins of the reliability."""
        hits, found, true = (side.sum(0) for side in (self.found & self.true, self.found, self.true))
        if self.several:
            rest = len(self.true) - found - true + hits
            counts = np.stack([hits, found - hits, true - hits, rest], axis=1).tolist()
            heads = ["true positive", "false positive", "false negative", "true negative"]
            confusion = [Table("confusion", "decisions about each class", heads, _named(self.names, counts), False)]
        elif len(self.names) <= MOST_COUNTED:
            title = "confusion matrix: a row for each true class, a column for each predicted class"
            rows = _named(self.names, self.confusion().tolist())
            confusion = [Table("confusion", title, self.names, rows, len(self.names) <= MOST_PRINTED)]
        else:
            confusion = []
        bins = {
            f"{b.low:.3f}-{b.high:.3f}": [b.answers, 100.0 * b.confidence, 100.0 * b.accuracy]
            for b in self.reliability()
        }
        return [
            *confusion,
            class_table(self.found, self.true, self.names, "examples"),
            Table("reliability", "answers by their confidence", ["answers", "confidence", "accuracy"], bins, False),
        ]


def class_table(found: NDArray[np.bool_], true: NDArray[np.bool_], names: Sequence[str], counted: str) -> Table:
    """Precision, recall, F1 and the number of true cases of each class.

    Args:
        found: (cases, classes): which are predicted.
        true: (cases, classes): which are right.
        names: of the classes.
        counted: what a case is.
    """
    hits, predicted, real = (side.sum(0) for side in (found & true, found, true))
    shares = [100.0 * _divided(hits, predicted), 100.0 * _divided(hits, real), 200.0 * _divided(hits, predicted + real)]
    rows = zip(*(share.tolist() for share in shares), real.tolist(), strict=True)
    classes = dict(zip(names, map(list, rows), strict=True))
    return Table("classes", "figures of each class, in %", ["precision", "recall", "f1", counted], classes)


def score_labels(
    predicted: Sequence[Any],
    wanted: Sequence[Any],
    probabilities: Sequence[Sequence[float]],
    names: Sequence[str],
    metrics: Sequence[str],
    *,
    several: bool = False,
) -> dict[str, Figure]:
    """Computes several metrics of the same answers; see `Labelled.of` for the arguments."""
    return Labelled.of(predicted, wanted, probabilities, names, several=several).figures(metrics)


class Metric(NamedTuple):
    """How a figure is computed, and how it is read."""

    compute: Callable[[Labelled], float]
    higher: bool
    """Whether higher is better."""
    definition: str
    of_grades: bool = False
    """Whether it needs ordered labels."""
    of_decisions: bool = False
    """Whether it needs a positive class or several labels."""


METRICS = {
    "accuracy": Metric(
        lambda all: 100.0 * float((all.found == all.true).all(1).mean()), True, "% of examples with the right label"
    ),
    "macro_f1": Metric(lambda all: 100.0 * macro_f1(all.found, all.true), True, "F1 in %, mean of the classes"),
    "micro_f1": Metric(lambda all: 100.0 * micro_f1(all.found, all.true), True, "F1 in %, over all decisions"),
    "auroc": Metric(
        lambda all: 100.0 * mean_of_classes(auroc, all.probabilities, all.true),
        True,
        "area under ROC in %, each class against the rest, mean",
    ),
    "auprc": Metric(
        lambda all: 100.0 * mean_of_classes(average_precision, all.asked(all.probabilities), all.asked(all.true)),
        True,
        "average precision in %, of the positive class or mean of all classes",
    ),
    "sensitivity": Metric(
        lambda all: 100.0 * share_right(all.asked(all.found), all.asked(all.true)),
        True,
        "% of the positive examples that are found, at the threshold",
        of_decisions=True,
    ),
    "specificity": Metric(
        lambda all: 100.0 * share_right(~all.asked(all.found), ~all.asked(all.true)),
        True,
        "% of the negative examples that are left alone, at the threshold",
        of_decisions=True,
    ),
    "ece": Metric(
        lambda all: 100.0 * calibration_error(all.reliability()),
        False,
        f"expected calibration error in %, {BINS} bins",
    ),
    "mean_absolute_error": Metric(
        lambda all: float(np.abs(all.found.argmax(1) - all.true.argmax(1)).mean()),
        False,
        "mean distance in grades",
        of_grades=True,
    ),
    "quadratic_weighted_kappa": Metric(
        lambda all: quadratic_weighted_kappa(all.found.argmax(1), all.true.argmax(1)),
        True,
        "agreement beyond chance, from -1 to 1, distances squared",
        of_grades=True,
    ),
}


HIGHER_IS_BETTER = {name: metric.higher for name, metric in METRICS.items()}


def _divided(part: NDArray[np.int64], whole: NDArray[np.int64]) -> NDArray[np.float64]:
    """part / whole; NaN where the whole is 0."""
    shares = np.full(len(part), np.nan)
    np.divide(part, whole, out=shares, where=whole > 0)
    return shares


def _named(names: Sequence[str], rows: Sequence[Sequence[int]]) -> dict[str, Sequence[int]]:
    return dict(zip(names, rows, strict=True))


def indicators(labels: Sequence[Any], names: Sequence[str]) -> NDArray[np.bool_]:
    """(examples, classes): True where an example has a class."""
    places = {name: place for place, name in enumerate(names)}
    found = np.zeros((len(labels), len(names)), dtype=bool)
    for row, label in enumerate(labels):
        for name in [label] if isinstance(label, str) else label:
            found[row, places[name]] = True
    return found
