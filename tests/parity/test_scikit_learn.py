"""The same numbers as scikit-learn."""

import numpy as np
import pytest

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
