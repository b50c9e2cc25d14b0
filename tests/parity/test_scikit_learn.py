"""The same numbers as scikit-learn."""

import numpy as np
import pytest

from saccade.evaluation.calibration import reliability
from saccade.evaluation.labels import METRICS, Labelled
from saccade.evaluation.rationales import auprc, average_precision

peer = pytest.importorskip("sklearn.metrics", reason="the peer `scikit-learn` is not installed")

EXAMPLES = 211


@pytest.mark.parametrize("levels", [3, 1_000_003])
def test_areas_under_precision_recall(levels):
    generator = np.random.default_rng(levels)
    scores = generator.integers(levels, size=EXAMPLES) / levels
    marked = generator.random(EXAMPLES) < 0.2
    precision, recall, _ = peer.precision_recall_curve(marked, scores)
    assert average_precision([scores], [marked]) == pytest.approx(peer.average_precision_score(marked, scores))
    assert auprc([scores], [marked]) == pytest.approx(peer.auc(recall, precision))


def graded(seed):
    """Grades, true grades and probabilities of five classes, of which one never occurs."""
    generator = np.random.default_rng(seed)
    names = list("abcde")
    wanted = generator.integers(4, size=EXAMPLES)
    raw = generator.random((EXAMPLES, 5))
    raw[np.arange(EXAMPLES), wanted] += 0.3
    probabilities = raw / raw.sum(1, keepdims=True)
    return [names[k] for k in probabilities.argmax(1)], [names[k] for k in wanted], probabilities, names


@pytest.mark.parametrize("seed", range(3))
def test_figures_of_labels(seed):
    predicted, wanted, probabilities, names = graded(seed)
    figures = Labelled.of(predicted, wanted, probabilities, names).figures(list(METRICS))
    places = [[names.index(label) for label in side] for side in (wanted, predicted)]
    expected = {
        "accuracy": 100 * peer.accuracy_score(wanted, predicted),
        "macro_f1": 100 * peer.f1_score(wanted, predicted, average="macro"),
        "micro_f1": 100 * peer.f1_score(wanted, predicted, average="micro"),
        "auroc": 100
        * np.mean([peer.roc_auc_score([w == n for w in wanted], probabilities[:, k]) for k, n in enumerate(names[:4])]),
        "mean_absolute_error": peer.mean_absolute_error(*places),
        "quadratic_weighted_kappa": peer.cohen_kappa_score(*places, weights="quadratic"),
    }
    assert {name: figures[name].value for name in expected} == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(3))
def test_tables_of_labels(seed):
    predicted, wanted, probabilities, names = graded(seed)
    confusion, classes, _ = Labelled.of(predicted, wanted, probabilities, names).tables()
    assert list(confusion.rows.values()) == peer.confusion_matrix(wanted, predicted, labels=names).tolist()
    *rates, support = peer.precision_recall_fscore_support(wanted, predicted, labels=names, zero_division=np.nan)
    rates[2] = np.where(np.isnan(rates[0]) & (support > 0), 0.0, rates[2])
    np.testing.assert_allclose(list(classes.rows.values()), np.stack([*(100 * np.stack(rates)), support], axis=1))


def test_reliability():
    from sklearn.calibration import calibration_curve

    generator = np.random.default_rng(5)
    confidence = generator.random(EXAMPLES)
    right = generator.random(EXAMPLES) < confidence
    bins = [each for each in reliability(confidence, right) if each.answers]
    accuracy, mean = calibration_curve(right, confidence, n_bins=15)
    np.testing.assert_allclose([each.accuracy for each in bins], accuracy)
    np.testing.assert_allclose([each.confidence for each in bins], mean)
