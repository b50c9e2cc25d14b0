"""How far figures would differ for other examples of the same kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from saccade.checks import check_count

SHARE = 0.95


def bootstrap(
    figures: Callable[[NDArray[np.int64]], Mapping[str, float]], examples: int, samples: int, *, seed: int = 0
) -> dict[str, tuple[float, float]]:
    """The interval that contains each figure in 95 % of the resamplings: its percentiles 2.5 and 97.5.

    Resamplings in which a figure is not a number, such as an area without positive examples, do not count for it.

    Args:
        figures: of the examples with these numbers, some of them several times.
        examples: how many there are.
        samples: how many times as many examples are drawn, with replacement.
        seed: for the draws.

    Reference:
        Efron and Tibshirani (1993), "An introduction to the bootstrap", chapter 13.
    """
    check_count("bootstrap", samples)
    draws = np.random.default_rng(seed)
    found: dict[str, list[float]] = {}
    for _ in range(samples):
        for name, value in figures(draws.integers(0, examples, examples)).items():
            found.setdefault(name, []).append(value)
    outside = 50.0 * (1.0 - SHARE)
    intervals: dict[str, tuple[float, float]] = {}
    for name, values in found.items():
        known = np.array(values)[~np.isnan(values)]
        if len(known):
            low, high = np.percentile(known, [outside, 100.0 - outside])
            intervals[name] = (float(low), float(high))
    return intervals


def rows_of(counts: Sequence[int], chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows of chosen examples, one example after another, if example n has `counts[n]` rows in a row."""
    sizes = np.asarray(counts, dtype=np.int64)
    starts = np.cumsum(sizes) - sizes
    lengths = sizes[chosen]
    before = np.cumsum(lengths) - lengths
    found: NDArray[np.int64] = np.arange(int(lengths.sum())) - np.repeat(before - starts[chosen], lengths)
    return found
