"""The maximum spanning tree of a directed graph."""

from collections.abc import Callable

import torch
from torch import Tensor

Arcs = dict[int, tuple[float, int, int]]
"""The arcs into a node: for each head, the weight, and the dependent and head as words."""


def best_tree(arcs: Tensor) -> Tensor:
    """heads (batch, n) of the tree with the largest sum of arcs (batch, n, n); a root is its own head.

    Rows are dependents, columns heads, roots on the diagonal.
    """
    heads = [_heads(table) for table in arcs.tolist()]
    return torch.tensor(heads, dtype=torch.long, device=arcs.device).reshape(arcs.shape[:-1])


def _heads(table: list[list[float]]) -> list[int]:
    """Chu and Liu (1965), Edmonds (1967): picks the best head of every word and contracts each cycle to one word."""
    size = len(table)
    root = size  # above all roots
    arcs: dict[int, Arcs] = {
        d: {(root if h == d else h): (table[d][h], d, h) for h in range(size)} for d in range(size)
    }
    inside: dict[int, list[int]] = {}  # the cycle that a contracted word represents
    chosen: Arcs = {}
    settled: set[int] = set()  # the nodes that have chosen
    member: dict[int, int] = {}  # the contracted word that a node belongs to
    following = root + 1

    def outermost(node: int) -> int:
        while node in member:
            node = member[node]
        return node

    for start in list(arcs):
        node = outermost(start)
        path: list[int] = []
        while node != root and node not in settled:
            head, chosen[node] = max(arcs[node].items(), key=lambda item: item[1][0])
            settled.add(node)
            path.append(node)
            node = outermost(head)
            if node in path:
                cycle = path[path.index(node) :]
                made, following = following, following + 1
                arcs[made] = _join(arcs, cycle, chosen, outermost)
                inside[made] = cycle
                for part in cycle:
                    member[part] = made
                path = path[: path.index(node)]
                node = made
    # From the outermost words inwards: an arc that enters a cycle replaces the cycle's own arc.
    for made in sorted(inside, reverse=True):
        entering = chosen[made]
        node = entering[1]
        while member[node] != made:
            node = member[node]
        chosen[node] = entering
    return [chosen[d][2] for d in range(size)]


def _join(
    arcs: dict[int, Arcs],
    cycle: list[int],
    chosen: Arcs,
    outermost: Callable[[int], int],
) -> Arcs:
    """The arcs into a cycle, each adjusted for removing the cycle's own arc into the same word."""
    joined: Arcs = {}
    within = set(cycle)
    for part in cycle:
        for head, (weight, dependent, original) in arcs[part].items():
            outer = outermost(head)
            if outer in within:
                continue
            gain = weight - chosen[part][0]
            if outer not in joined or gain > joined[outer][0]:
                joined[outer] = (gain, dependent, original)
    return joined
