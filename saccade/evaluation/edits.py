"""Edit distance."""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple


class Edits(NamedTuple):
    """What turns a reference into a text: how many of its items are replaced or deleted, and how many are inserted."""

    substitutions: int
    deletions: int
    insertions: int


def edit_distance(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """The minimum number of insertions, deletions and substitutions that turn one sequence into the other.

    Adjacent rows of the distance table differ by -1, 0 or 1 in every column, so the bits of two integers represent a
    column, and each step through `second` takes a handful of integer operations.

    Reference:
        Myers (1999), in the form of Hyyrö (2001).
    """
    return len(first) + sum(change for *_, change in _columns(_places(first), len(first), second))


def count_edits(reference: Sequence[Hashable], text: Sequence[Hashable]) -> Edits:
    """The substitutions, deletions and insertions of one of the shortest ways from the reference to the text.

    There may be several: "ab" becomes "ba" by two substitutions, or by a deletion and an insertion. Going back from the
    end, a deletion is preferred, then an insertion. That is the choice of RapidFuzz, and so of jiwer.
    """
    start = 0
    while start < min(len(reference), len(text)) and reference[start] == text[start]:
        start += 1
    end = 0
    while end < min(len(reference), len(text)) - start and reference[-1 - end] == text[-1 - end]:
        end += 1
    reference, text = reference[start : len(reference) - end], text[start : len(text) - end]
    columns = DistanceColumns(reference, text)
    row, column = len(reference), len(text)  # of the table: row 0 and column 0 stand for nothing
    substitutions = deletions = insertions = 0
    while row and column:
        if columns[column].rises >> (row - 1) & 1:
            row, deletions = row - 1, deletions + 1
            continue
        column -= 1
        if column and columns[column].falls >> (row - 1) & 1:
            insertions += 1
        else:
            row -= 1
            substitutions += reference[row] != text[column]
    return Edits(substitutions, deletions + row, insertions + column)


class Column(NamedTuple):
    """A column of the distance table, from top to bottom."""

    rises: int
    """The rows where it rises, as bits of an integer."""
    falls: int
    change: int
    """By how much the last row changes from the column before."""


class DistanceColumns:
    """The columns of a distance table, read from the last to the first.

    Only every n-th one of n² is kept. Those in between are recomputed when needed, so that memory stays small for long
    texts.
    """

    def __init__(self, first: Sequence[Hashable], second: Sequence[Hashable]) -> None:
        self.places, self.length, self.second = _places(first), len(first), second
        self.step = math.isqrt(len(second)) + 1
        self.kept = [_start(len(first))]
        for number, column in enumerate(_columns(self.places, self.length, second), start=1):
            if number % self.step == 0:
                self.kept.append(column)
        self._block, self._inside = -1, list[Column]()

    def __getitem__(self, number: int) -> Column:
        block, place = divmod(number, self.step)
        if block != self._block:
            begin = block * self.step
            items, before = self.second[begin : begin + self.step - 1], self.kept[block]
            self._block, self._inside = block, [before, *_columns(self.places, self.length, items, before)]
        return self._inside[place]


def _places(items: Sequence[Hashable]) -> dict[Hashable, int]:
    """Where each item occurs, as bits of an integer."""
    places: dict[Hashable, int] = {}
    for place, item in enumerate(items):
        places[item] = places.get(item, 0) | 1 << place
    return places


def _start(length: int) -> Column:
    return Column((1 << length) - 1, 0, 0)


def _columns(
    places: Mapping[Hashable, int], length: int, second: Sequence[Hashable], before: Column | None = None
) -> Iterator[Column]:
    """The column of the distance table for each item of `second`, after the one `before`."""
    everywhere, last = (1 << length) - 1, 1 << length >> 1
    rises, falls, _ = before or _start(length)
    for item in second:
        equal = places.get(item, 0)
        diagonal = (((equal & rises) + rises) ^ rises) | equal
        right_rises = falls | ~(diagonal | rises) & everywhere
        right_falls = rises & diagonal
        change = bool(right_rises & last) - bool(right_falls & last) if last else 1
        right_rises = (right_rises << 1 | 1) & everywhere
        right_falls = right_falls << 1 & everywhere
        steady = equal | falls
        rises = right_falls | ~(steady | right_rises) & everywhere
        falls = right_rises & steady
        yield Column(rises, falls, change)


def common_length(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """The length of the longest common subsequence of two sequences.

    Reference:
        Hyyrö (2004): each bit that is 0 after the last step stands for one item of the subsequence.
    """
    places, everywhere = _places(first), (1 << len(first)) - 1
    rest = everywhere
    for item in second:
        same = rest & places.get(item, 0)
        rest = (rest + same | rest - same) & everywhere
    return len(first) - rest.bit_count()
