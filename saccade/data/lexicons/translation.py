"""Word translation by expectation maximisation: IBM model 1 and the hidden Markov model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FARTHEST = 10
"""Jumps of the hidden Markov model are counted up to here; longer ones share the last count."""

NULL_SHARE = 0.2
"""How often a word comes from no source word, in the hidden Markov model."""

Pairs = Sequence[tuple[Sequence[int], Sequence[int]]]
"""Source and target of each sentence pair, as numbers of words; 0 is kept for no word."""


class Translations(NamedTuple):
    """p(target | source) of words that occur together in a sentence pair.

    Args:
        sources, targets: (entries,), numbers of words; a source of 0 stands for no word.
        probabilities: (entries,), those of one source sum to 1.
    """

    sources: NDArray[np.int64]
    targets: NDArray[np.int64]
    probabilities: NDArray[np.float64]


class _Cells(NamedTuple):
    """Every pair of a source word, including word 0, and a target word of the same sentence pair."""

    entry: NDArray[np.int64]
    """(cells,), the number of the entry that a cell is an occurrence of."""
    row: NDArray[np.int64]
    """(cells,), the number of the target word, over all pairs."""
    sources: NDArray[np.int64]
    targets: NDArray[np.int64]


def ibm1(pairs: Pairs, *, rounds: int = 5) -> Translations:
    r"""Translation probabilities of IBM model 1, in which all alignments are equally likely.

    .. math:: c(e, f) = \sum_{\text{pairs}} \sum_{j, i} [e_j = e][f_i = f]
        \frac{t(e \mid f)}{\sum_{i'} t(e \mid f_{i'})}, \qquad t(e \mid f) = \frac{c(e, f)}{\sum_{e'} c(e', f)}

    Reference:
        Brown et al. (1993), "The mathematics of statistical machine translation", section 4.2.

    Args:
        pairs: sentence pairs.
        rounds: how often expectation and maximisation alternate.
    """
    cells = _cells(pairs)
    weights = np.ones(len(cells.sources))  # any constant is a uniform start
    for _ in range(rounds):
        shares = weights[cells.entry]
        totals = np.bincount(cells.row, shares)
        counts = np.bincount(cells.entry, shares / totals[cells.row], minlength=len(weights))
        weights = _normalised(counts.astype(np.float64), cells.sources)
    return Translations(cells.sources, cells.targets, weights)


def hmm(pairs: Pairs, *, rounds: int = 5, start: Translations | None = None) -> Translations:
    r"""Translation probabilities of a hidden Markov model, in which neighbouring words align to neighbours.

    .. math:: p(e, a \mid f) = \prod_j p(a_j \mid a_{j-1}) \, t(e_j \mid f_{a_j}), \qquad
        p(i \mid i') \propto c(i - i')

    Each source position has a twin that stands for no word, which keeps the position for the next jump.

    Reference:
        Vogel et al. (1996), "HMM-based word alignment in statistical translation"; the twins: Och & Ney (2003),
        section 2.1.

    Args:
        pairs: sentence pairs.
        rounds: how often expectation and maximisation alternate.
        start: where to start from, by default five rounds of IBM model 1.
    """
    start = start or ibm1(pairs)
    cells = _cells(pairs)
    width = int(cells.targets.max(initial=0)) + 1
    known = dict(zip((start.sources * width + start.targets).tolist(), start.probabilities.tolist(), strict=True))
    weights = np.array([known[key] for key in (cells.sources * width + cells.targets).tolist()])
    jumps = np.ones(2 * FARTHEST + 1)
    for _ in range(rounds):
        counts, moved = np.zeros(len(weights)), np.full(2 * FARTHEST + 1, 1e-3)
        place = 0
        for source, target in pairs:
            length, size = len(source) + 1, len(target)
            own = cells.entry[place : place + length * size].reshape(size, length)
            place += length * size
            if size and length > 1:
                posterior, transitions = _forward_backward(weights[own], jumps)
                np.add.at(counts, own, posterior)
                np.add.at(moved, _bins(length - 1), transitions)
        weights, jumps = _normalised(counts, cells.sources), moved / moved.sum()
    return Translations(cells.sources, cells.targets, weights)


def _forward_backward(
    emissions: NDArray[np.float64], jumps: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(words, 1 + positions): how likely each target word comes from each position, 0 for none; and (positions,
    positions): how often each jump is expected.

    Args:
        emissions: (words, 1 + positions), t(e | f), that of no word first.
    """
    steps, length = emissions.shape[0], emissions.shape[1] - 1
    moves = jumps[_bins(length)]
    moves = (1.0 - NULL_SHARE) * moves / moves.sum(1, keepdims=True)
    words, nothing = np.maximum(emissions[:, 1:], 1e-12), np.maximum(emissions[:, :1], 1e-12)
    forward = np.empty((steps, 2, length))
    forward[0, 0], forward[0, 1] = (1.0 - NULL_SHARE) / length * words[0], NULL_SHARE / length * nothing[0]
    forward[0] /= forward[0].sum()
    for step in range(1, steps):
        before = forward[step - 1].sum(0)  # a position and its twin jump alike
        forward[step, 0] = (before @ moves) * words[step]
        forward[step, 1] = NULL_SHARE * before * nothing[step]
        forward[step] /= forward[step].sum()
    backward = np.ones(length)
    posterior = np.empty((steps, length + 1))
    expected = np.zeros((length, length))
    for step in range(steps - 1, -1, -1):
        both = forward[step] * backward
        both /= both.sum()
        posterior[step, 0], posterior[step, 1:] = both[1].sum(), both[0]
        if step:
            onward = words[step] * backward
            here = forward[step - 1].sum(0)[:, None] * moves * onward
            stays = NULL_SHARE * forward[step - 1].sum(0) * nothing[step] * backward
            expected += here / (here.sum() + stays.sum())
            backward = moves @ onward + NULL_SHARE * nothing[step] * backward
            backward /= backward.sum()
    return posterior, expected


def _bins(length: int) -> NDArray[np.int64]:
    """(positions, positions): the number of each jump's count, from a row's position to a column's."""
    places = np.arange(length)
    bins: NDArray[np.int64] = np.clip(places[None, :] - places[:, None], -FARTHEST, FARTHEST) + FARTHEST
    return bins


def _cells(pairs: Pairs) -> _Cells:
    sources, targets, rows, row = [], [], [], 0
    for source, target in pairs:
        with_none = np.array([0, *source], dtype=np.int64)
        sources.append(np.tile(with_none, len(target)))
        targets.append(np.repeat(np.array(target, dtype=np.int64), len(with_none)))
        rows.append(np.repeat(np.arange(row, row + len(target)), len(with_none)))
        row += len(target)
    source_of, target_of = (np.concatenate([*each, np.zeros(0, dtype=np.int64)]) for each in (sources, targets))
    width = int(target_of.max(initial=0)) + 1
    keys, entry = np.unique(source_of * width + target_of, return_inverse=True)
    row_of = np.concatenate([*rows, np.zeros(0, dtype=np.int64)])
    return _Cells(entry.reshape(-1), row_of, keys // width, keys % width)


def _normalised(counts: NDArray[np.float64], sources: NDArray[np.int64]) -> NDArray[np.float64]:
    """Counts divided by those of all entries of the same source word."""
    totals = np.bincount(sources, counts)
    return counts / np.maximum(totals[sources], 1e-300)
