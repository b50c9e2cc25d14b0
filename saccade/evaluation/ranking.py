"""Metrics of ranked lists, such as recommendations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saccade.evaluation.figures import Figure

AT = 10
"""The length of the lists that are scored."""

METRICS = {
    "ndcg@10": "normalised discounted gain of the first 10, in %",
    "recall@10": "share of the relevant items among the first 10, in %",
}
"""The metrics of one list against candidates; each higher is better."""


def ndcg(scores: ArrayLike, relevant: ArrayLike, at: int = AT) -> float:
    r"""The discounted gain of the first items of a list, divided by that of the best order; 0 if none is relevant.

    .. math:: \frac{\sum_{r \le k} g_r / \log_2(r + 1)}{\sum_{r \le \min(k, n)} 1 / \log_2(r + 1)}

    g_r is 1 if the item of rank r is relevant, and n is the number of relevant items. Items with equal scores share the
    gain of their ranks: the result is the mean over all their orders.

    Args:
        scores: of the candidates; the list begins with the highest.
        relevant: bool, which of them should be at the top.
        at: the length k of the list.

    Reference:
        Järvelin and Kekäläinen (2002), "Cumulated gain-based evaluation of IR techniques".
    """
    discounts = 1.0 / np.log2(np.arange(2, at + 2))
    best = discounts[: int(np.asarray(relevant, dtype=bool).sum())].sum()
    return float(_gained(scores, relevant, discounts) / best) if best else 0.0


def recall(scores: ArrayLike, relevant: ArrayLike, at: int = AT) -> float:
    """The share of the relevant items that are among the first `at`; 0 if none is relevant.

    Items with equal scores share their ranks, as in `ndcg`.
    """
    count = int(np.asarray(relevant, dtype=bool).sum())
    return float(_gained(scores, relevant, np.ones(at)) / count) if count else 0.0


def _gained(scores: ArrayLike, relevant: ArrayLike, gains: NDArray[np.float64]) -> float:
    """The expected sum of the gains of the relevant items' ranks, where ties are broken at random."""
    values, wanted = np.asarray(scores, dtype=np.float64), np.asarray(relevant, dtype=bool)
    every = np.zeros(len(values))
    every[: len(gains)] = gains[: len(values)]
    total = np.concatenate([[0.0], every.cumsum()])
    ordered = np.sort(-values)
    first, past = (np.searchsorted(ordered, -values[wanted], side) for side in ("left", "right"))
    return float(((total[past] - total[first]) / (past - first)).sum())


def score_rankings(
    lists: Sequence[tuple[ArrayLike, ArrayLike]], metrics: Sequence[str], against: str
) -> dict[str, Figure]:
    """The means of metrics over several lists, each with the scores of its candidates and which are relevant.

    Args:
        lists: one for each user.
        metrics: names from `METRICS`.
        against: what the candidates are, for the signature.
    """
    if not lists:
        raise ValueError("There is no list to measure.")
    found = {}
    for name in metrics:
        measure = ndcg if name.startswith("ndcg") else recall
        value = 100.0 * float(np.mean([measure(scores, relevant) for scores, relevant in lists]))
        found[name] = Figure(value, f"{METRICS[name]}, against {against}; mean of {len(lists):,} users")
    return found
