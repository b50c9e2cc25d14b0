"""Links from weights."""

import pytest
import torch

from saccade.interpretation.alignments import align, align_above, align_mutual

WEIGHTS = torch.tensor([[0.1, 0.9, 0.0], [0.3, 0.4, 0.3], [0.0, 0.0, 0.0], [0.0, 0.2, 0.8], [0.6, 0.0, 0.4]])


def test_the_most_looked_at() -> None:
    assert align(WEIGHTS) == [(1, 0), (1, 1), (2, 3), (0, 4)]


def test_all_above_a_threshold() -> None:
    assert align_above(WEIGHTS, 0.3) == [(1, 0), (0, 1), (1, 1), (2, 1), (2, 3), (0, 4), (2, 4)]
    assert align_above(WEIGHTS, 0.95) == []
    with pytest.raises(ValueError, match="above 0, got 0"):
        align_above(WEIGHTS, 0.0)


def test_those_that_look_at_each_other() -> None:
    assert align_mutual(WEIGHTS) == [(1, 0), (2, 3), (0, 4)]
    backward = torch.zeros(3, 5)
    backward[1, 1] = backward[2, 3] = backward[0, 0] = 1.0
    assert align_mutual(WEIGHTS, backward) == [(1, 1), (2, 3)]
    with pytest.raises(ValueError, match=r"\(3, 5\) for forward \(5, 3\), got \(5, 3\)"):
        align_mutual(WEIGHTS, WEIGHTS)


def test_heads_are_refused() -> None:
    for extract in (align, align_mutual, lambda weights: align_above(weights, 0.5)):
        with pytest.raises(ValueError, match="select one sentence and one head"):
            extract(torch.ones(2, 5, 3))
