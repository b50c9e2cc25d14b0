"""Examples held out of training for validation."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

MOST_HELD_OUT = 1000
"""Examples; validation takes long enough with these."""


def choose_held_out(marks: Iterable[int], share: float) -> set[int]:
    """The marks to hold out, in one pass over the marks of all examples and in bounded memory.

    Examples with equal marks form a group. The groups with the smallest marks are held out: the same ones each time,
    whatever the order. Together they have at most `share` of the examples, and at most 1000; at least one group is held
    out, and one is kept.
    """
    count, groups = 0, dict[int, int]()
    largest: list[int] = []  # a heap of negated marks: its first is the largest among the groups
    distinct = 0
    for one in marks:
        count += 1
        if one in groups:
            groups[one] += 1
        elif len(groups) < MOST_HELD_OUT or one < -largest[0]:  # a group once dropped has a larger mark, for good
            groups[one] = 1
            distinct += 1
            heapq.heappush(largest, -one)
            if len(groups) > MOST_HELD_OUT:
                del groups[-heapq.heappop(largest)]
    if not share or len(groups) < 2:
        return set()
    room = min(MOST_HELD_OUT, max(1, round(share * count)))
    held: set[int] = set()
    for one in sorted(groups):
        if groups[one] <= room and len(held) < distinct - 1:
            held.add(one)
            room -= groups[one]
    return held or {min(groups, key=lambda one: (groups[one], one))}
