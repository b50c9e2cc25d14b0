"""Is the first row of a table unlike all others? Then it may name the columns."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence

FEWEST = 30
"""So many rows show what a column is like."""

RARE = 0.01
"""The share of other rows that may be as unlike the rest as the first."""

LONGEST = 40
"""Longer cells are not compared letter by letter."""

APART = 0.1
"""How much less alike than any other pair the first one must be."""


def is_odd(first: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether the first row differs from nearly all others, as they hardly ever differ from each other.

    In a column where words, or labels, are used again and again, none of its words is; most of its letters are in no
    other cell; it begins in lower case where all others are capitalised, or is a word among
    phrases; or two of its cells are less alike than in any
    other row, as `singular` and `plural` are less alike than `cat` and `cats`.

    The first of many rows of data is no more likely to be such an exception than any other, so that it rarely is.

    Args:
        first: the cells of the first row.
        below: the columns under them.
    """
    if min(map(len, below), default=0) < FEWEST:
        return False
    for name, column in zip(first, below, strict=True):
        if _stands_out(name, column, str.split) or _stands_out(name, column, _letters) or _small(name, column):
            return True
    return any(_unlike(first[place : place + 2], below[place : place + 2]) for place in range(len(first) - 1))


def _stands_out(name: str, column: Sequence[str], pieces: Callable[[str], Sequence[Hashable]]) -> bool:
    """Whether less than half of the name's pieces are in other cells, which is rare for cells of this column."""
    used = Counter(piece for cell in column for piece in set(pieces(cell)))

    def alone(cell: str, times: int) -> bool:
        found = pieces(cell)
        return 2 * sum(used[piece] >= times for piece in found) < len(found)

    return alone(name, 1) and _rare(alone(cell, 2) for cell in column)


def _letters(cell: str) -> list[str]:
    return [letter for letter in cell[:LONGEST].lower() if not letter.isspace()]


def _small(name: str, column: Sequence[str]) -> bool:
    """Whether the name begins in lower case, or is one word, and no other cell is like that."""
    capitals = name[:1].islower() and all(cell[:1].isupper() for cell in column)
    return capitals or (len(name.split()) == 1 and all(len(cell.split()) > 2 for cell in column))


def _unlike(first: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether two cells of the first row are less alike than those below them."""
    rows = list(zip(*below, strict=False))
    if any(len(cell) > LONGEST for row in rows for cell in row):
        return False
    least = _likeness(*first) + APART
    return _rare(_likeness(*row) < least for row in rows)


def _likeness(a: str, b: str) -> float:
    return difflib.SequenceMatcher(None, a.lower(), b.lower(), autojunk=False).ratio()


def _rare(marks: Iterator[bool]) -> bool:
    found = list(marks)
    return sum(found) <= RARE * len(found)
