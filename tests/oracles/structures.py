"""Every structure, one by one."""

import itertools
from collections.abc import Iterator

import torch
from torch import Tensor


def state_sequences(length: int, states: int) -> list[tuple[int, ...]]:
    return list(itertools.product(range(states), repeat=length))


def chain_weight(sequence, unary: Tensor, transitions: Tensor, mask=None) -> Tensor:
    """unary (N, C), transitions (N - 1, C, C); masked positions are left out, the later position's edge is used."""
    kept = [i for i in range(len(sequence)) if mask is None or mask[i]]
    total = unary.new_zeros(())
    for i in kept:
        total = total + unary[i, sequence[i]]
    for before, i in itertools.pairwise(kept):
        total = total + transitions[i - 1, sequence[before], sequence[i]]
    return total


def trees(n: int, *, projective: bool, single_root: bool) -> Iterator[tuple[int, ...]]:
    """Head of each of n words, a root being its own head."""
    for heads in itertools.product(range(n), repeat=n):
        if is_tree(heads) and (not projective or is_projective(heads)):
            roots = sum(d == h for d, h in enumerate(heads))
            if roots == 1 or (not single_root and roots >= 1) or n == 0:
                yield heads


def is_tree(heads) -> bool:
    for d in range(len(heads)):
        seen, word = set(), d
        while heads[word] != word:
            if word in seen:
                return False
            seen.add(word)
            word = heads[word]
    return True


def is_projective(heads) -> bool:
    """Whether no two arcs cross, those from the root above the sentence's beginning included."""
    arcs = [(0, d + 1) if h == d else tuple(sorted((h + 1, d + 1))) for d, h in enumerate(heads)]
    return not any(a < c < b < e for a, b in arcs for c, e in arcs)


def tree_indicator(heads) -> Tensor:
    z = torch.zeros(len(heads), len(heads), dtype=torch.float64)
    for d, h in enumerate(heads):
        z[d, h] = 1
    return z


def segmentations(length: int, longest: int) -> Iterator[list[tuple[int, int]]]:
    """Ways to cut `length` positions into segments (start, length) of at most `longest`."""
    if length == 0:
        yield []
    for size in range(1, min(longest, length) + 1):
        for rest in segmentations(length - size, longest):
            yield [*rest, (length - size, size)]


class Enumerated:
    """A distribution over outcomes z (outcomes, ...) with given weights (outcomes,)."""

    def __init__(self, outcomes: Tensor, weights: Tensor) -> None:
        self.outcomes, self.weights = outcomes, weights

    @property
    def log_partition(self) -> Tensor:
        return self.weights.logsumexp(0)

    @property
    def probs(self) -> Tensor:
        return self.weights.softmax(0)

    @property
    def marginals(self) -> Tensor:
        return torch.einsum("o,o...->...", self.probs, self.outcomes)

    @property
    def entropy(self) -> Tensor:
        return -(self.probs * self.weights.log_softmax(0)).sum()
