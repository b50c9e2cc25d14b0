"""Expectation maximisation against plain loops, and against all alignments of a short pair."""

import itertools

import numpy as np
import pytest

from saccade.data.lexicons import hmm, ibm1
from saccade.data.lexicons.translation import FARTHEST, NULL_SHARE, _bins, _forward_backward

PAIRS = [([1, 2], [1, 2, 3]), ([2, 3, 3], [3, 1]), ([1], [2]), ([3, 1, 2, 4], [4, 4, 1, 5, 2]), ([4], [])]


def as_table(found):
    return {(s, t): p for s, t, p in zip(*(each.tolist() for each in found), strict=True)}


@pytest.mark.parametrize("rounds", [1, 5])
def test_ibm1_is_that_of_the_loops(rounds):
    table = {(s, t): 1.0 for source, target in PAIRS for s in [0, *source] for t in target}
    for _ in range(rounds):
        counts = dict.fromkeys(table, 0.0)
        for source, target in PAIRS:
            for t in target:
                total = sum(table[s, t] for s in [0, *source])
                for s in [0, *source]:
                    counts[s, t] += table[s, t] / total
        sums = {s: sum(c for (other, _), c in counts.items() if other == s) for s, _ in counts}
        table = {(s, t): c / sums[s] for (s, t), c in counts.items()}
    found = as_table(ibm1(PAIRS, rounds=rounds))
    assert found.keys() == table.keys()
    assert all(found[key] == pytest.approx(table[key]) for key in table)


def test_posteriors_are_those_of_all_alignments():
    generator = np.random.default_rng(3)
    words, positions = 4, 3
    emissions = generator.random((words, 1 + positions))
    jumps = generator.random(2 * FARTHEST + 1)
    posterior, expected = _forward_backward(emissions, jumps)
    moves = jumps[_bins(positions)]
    moves = (1 - NULL_SHARE) * moves / moves.sum(1, keepdims=True)
    total, wanted, jumped = 0.0, np.zeros((words, 1 + positions)), np.zeros((positions, positions))
    for path in itertools.product(range(positions), (False, True), repeat=words):
        states = [(path[2 * n], path[2 * n + 1]) for n in range(words)]
        p, before = 1.0, None
        for n, (place, nothing) in enumerate(states):
            if before is None:
                p *= (NULL_SHARE if nothing else 1 - NULL_SHARE) / positions
            elif nothing:
                p *= NULL_SHARE if place == before else 0.0
            else:
                p *= moves[before, place]
            p *= emissions[n, 0] if nothing else emissions[n, 1 + place]
            before = place
        total += p
        for n, (place, nothing) in enumerate(states):
            wanted[n, 0 if nothing else 1 + place] += p
            if n and not nothing:
                jumped[states[n - 1][0], place] += p
    np.testing.assert_allclose(posterior, wanted / total)
    np.testing.assert_allclose(expected, jumped / total)


def test_both_find_a_cipher_and_the_markov_model_is_surer():
    generator = np.random.default_rng(1)
    key = generator.permutation(np.arange(1, 31))
    pairs = []
    for _ in range(400):
        source = generator.integers(1, 31, generator.integers(3, 9)).tolist()
        pairs.append((source, [int(key[word - 1]) for word in source]))
    right = {}
    for name, found in (("ibm1", ibm1(pairs)), ("hmm", hmm(pairs))):
        table = as_table(found)
        right[name] = float(np.mean([table[word, int(key[word - 1])] for word in range(1, 31)]))
        best = {s: max((t for other, t in table if other == s), key=lambda t: table[s, t]) for s in range(1, 31)}
        assert [best[word] for word in range(1, 31)] == key.tolist()
    assert right["hmm"] > right["ibm1"] > 0.5


def test_every_word_has_a_distribution():
    for found in (ibm1(PAIRS), hmm(PAIRS)):
        for word in set(found.sources.tolist()):
            assert found.probabilities[found.sources == word].sum() == pytest.approx(1.0)
