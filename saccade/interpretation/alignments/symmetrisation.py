"""Symmetrisation: combines the alignments of two directions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from saccade.interpretation.alignments.extraction import Link
from saccade.registry import nearest

Method = Literal["intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and"]
METHODS: tuple[Method, ...] = ("intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and")

NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def symmetrise(forward: Iterable[Link], backward: Iterable[Link], method: Method = "grow-diag-final-and") -> list[Link]:
    """Combines the links of two directions into one alignment.

    `intersection` keeps the links in both, `union` those in either. `grow-diag` starts from the intersection and
    repeatedly adds links of the union that are adjacent to an existing link, including diagonally, if one of their two
    words is still unlinked. `grow-diag-final` then adds links of either direction, forward first, if at least one of
    the words is still unlinked; `grow-diag-final-and` only if both are. Links are tried in the order of their target
    words, then of their source words. Every result lies between the intersection and the union.

    Reference:
        Och & Ney (2003), Computational Linguistics 29(1); Koehn et al. (2005), IWSLT.

    Args:
        forward: (source, target), from the model that generates the target.
        backward: also (source, target), from the model of the other direction.
        method: one of `METHODS`.

    Returns:
        The links, in the order of their target words.
    """
    if method not in METHODS:
        raise ValueError(f"Unknown symmetrisation {method!r}.{nearest(method, METHODS)}")
    there, back = set(forward), set(backward)
    if method == "union":
        return _ordered(there | back)
    links = there & back
    if method == "intersection":
        return _ordered(links)
    sources, targets = {source for source, _ in links}, {target for _, target in links}

    def add(link: Link) -> None:
        links.add(link)
        sources.add(link[0])
        targets.add(link[1])

    union = there | back
    order = _ordered(union)
    grown = True
    while grown:
        before = len(links)
        for source, target in order:
            if (source, target) in links:
                for right, down in NEIGHBOURS:
                    near = source + right, target + down
                    if near in union and near not in links and not (near[0] in sources and near[1] in targets):
                        add(near)
        grown = len(links) > before
    if method != "grow-diag":
        for direction in (there, back):
            for link in _ordered(direction):
                linked = (link[0] in sources) + (link[1] in targets)
                if linked == 0 or (linked == 1 and method == "grow-diag-final"):
                    add(link)
    return _ordered(links)


def _ordered(links: Iterable[Link]) -> list[Link]:
    return sorted(links, key=lambda link: (link[1], link[0]))
