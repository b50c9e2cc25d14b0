"""Edit distance."""

from collections.abc import Hashable, Sequence


def edit_distance(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """The minimum number of insertions, deletions and substitutions that turn one sequence into the other.

    Adjacent columns of the distance table differ by -1, 0 or 1 in every row, so the bits of two integers represent a
    column, and each step through `second` takes a handful of integer operations.

    Reference:
        Myers (1999), in the form of Hyyrö (2001).
    """
    if not first:
        return len(second)
    everywhere, last = (1 << len(first)) - 1, 1 << (len(first) - 1)
    places: dict[Hashable, int] = {}
    for place, item in enumerate(first):
        places[item] = places.get(item, 0) | 1 << place
    rises, falls, distance = everywhere, 0, len(first)  # of the first column, from top to bottom
    for item in second:
        equal = places.get(item, 0)
        diagonal = (((equal & rises) + rises) ^ rises) | equal
        right_rises = falls | ~(diagonal | rises) & everywhere
        right_falls = rises & diagonal
        distance += bool(right_rises & last) - bool(right_falls & last)
        right_rises = (right_rises << 1 | 1) & everywhere
        right_falls = right_falls << 1 & everywhere
        steady = equal | falls
        rises = right_falls | ~(steady | right_rises) & everywhere
        falls = right_rises & steady
    return distance


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
