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


def trees(n: int, *, projective: bool, single_root: bool) -> Tensor:
    """heads (trees, n), a root being its own head: of all ways to give each word a head, those that are trees."""
    heads = torch.cartesian_prod(*[torch.arange(n)] * n).reshape(-1, n) if n else torch.zeros(1, 0, dtype=torch.long)
    top = heads
    for _ in range(n):  # who is above everyone after n steps
        top = heads.gather(1, top)
    words = torch.arange(n)
    heads = heads[(heads.gather(1, top) == top).all(1)]  # a root: not one of a cycle
    roots = (heads == words).sum(1)
    if single_root and n:
        heads = heads[roots == 1]
    return heads[is_projective(heads)] if projective else heads


def is_projective(heads: Tensor) -> Tensor:
    """(trees,): whether no two arcs cross, those from the root above the sentence's beginning included."""
    n = heads.shape[1]
    words = torch.arange(n)
    other = torch.where(heads == words, -1, heads)
    left, right = torch.minimum(other, words), torch.maximum(other, words)
    crossing = torch.zeros(len(heads), dtype=torch.bool)
    for a, b in itertools.permutations(range(n), 2):
        crossing |= (left[:, a] < left[:, b]) & (left[:, b] < right[:, a]) & (right[:, a] < right[:, b])
    return ~crossing


def tree_indicator(heads: Tensor) -> Tensor:
    """z (trees, n, n)."""
    return torch.nn.functional.one_hot(heads, heads.shape[1]).double() if heads.shape[1] else heads.double()[..., None]


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
