"""Rank correlation, against SciPy."""

import pytest
import torch

from saccade.evaluation.correlation import kendall, spearman


def test_by_hand() -> None:
    first = torch.tensor([1.0, 2.0, 3.0, 4.0])
    assert kendall(first, first.flip(0)).item() == spearman(first, first.flip(0)).item() == -1
    assert kendall(first, torch.tensor([1.0, 3.0, 2.0, 4.0])).item() == pytest.approx(4 / 6)
    assert kendall(first, torch.ones(4)).isnan()
    assert spearman(first, torch.ones(4)).isnan()


def test_against_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    first, second = torch.randint(0, 5, (2, 7, 11)).double()  # with ties
    for row in range(7):
        assert kendall(first, second)[row].item() == pytest.approx(stats.kendalltau(first[row], second[row]).statistic)
        assert spearman(first, second)[row].item() == pytest.approx(stats.spearmanr(first[row], second[row]).statistic)
