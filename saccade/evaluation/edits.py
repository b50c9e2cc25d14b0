"""Edit distance."""

from collections.abc import Hashable, Iterator, Sequence
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
    distance = len(first)
    for *_, change in _columns(first, second):
        distance += change
    return distance


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
    columns = [(rises, falls) for rises, falls, _ in _columns(reference, text)]
    row, column = len(reference), len(text)  # of the table: row 0 and column 0 stand for nothing
    substitutions = deletions = insertions = 0
    while row and column:
        if columns[column - 1][0] >> (row - 1) & 1:
            row, deletions = row - 1, deletions + 1
            continue
        column -= 1
        if column and columns[column - 1][1] >> (row - 1) & 1:
            insertions += 1
        else:
            row -= 1
            substitutions += reference[row] != text[column]
    return Edits(substitutions, deletions + row, insertions + column)


def _columns(first: Sequence[Hashable], second: Sequence[Hashable]) -> Iterator[tuple[int, int, int]]:
    """For each item of `second`: the rows where its column of the distance table rises and where it falls, as bits of
    integers, and by how much the last row changes from the column before."""
    everywhere, last = (1 << len(first)) - 1, 1 << len(first) >> 1
    places: dict[Hashable, int] = {}
    for place, item in enumerate(first):
        places[item] = places.get(item, 0) | 1 << place
    rises, falls = everywhere, 0  # of the first column, from top to bottom
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
        yield rises, falls, change


def common_length(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """The length of the longest common subsequence of two sequences.

    Reference:
        Hyyrö (2004): each bit that is 0 after the last step stands for one item of the subsequence.
    """
    places: dict[Hashable, int] = {}
    for place, item in enumerate(first):
        places[item] = places.get(item, 0) | 1 << place
    everywhere = (1 << len(first)) - 1
    rest = everywhere
    for item in second:
        same = rest & places.get(item, 0)
        rest = (rest + same | rest - same) & everywhere
    return len(first) - rest.bit_count()
