"""Examples held out of training for validation."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saccade.data.groups import Groups

MOST_HELD_OUT = 1000
"""The maximum number of examples to hold out, so that validation does not take too long."""


def choose_held_out(marks: ArrayLike, share: float, strata: NDArray[np.int64] | None = None) -> set[int]:
    """The marks to hold out.

    Examples with equal marks form a group. The groups with the smallest marks are held out: the same ones each time,
    whatever the order. Together they have at most `share` of the examples, and at most 1000; at least one group is held
    out. Each stratum contributes its share, and keeps at least one group.

    Args:
        marks: of all examples.
        share: how much to hold out, from 0 to 1.
        strata: the stratum of each example, if they have some.
    """
    groups = Groups.of(marks, strata)
    if not share or len(groups.marks) < 2:
        return set()
    several = groups.by_stratum()
    room = min(MOST_HELD_OUT, max(1, round(share * int(groups.sizes.sum()))))
    held: list[int] = []
    for places, part in zip(several, _apportioned(several, groups, room), strict=True):
        left = len(places) - 1
        for place in places:
            size = int(groups.sizes[place])
            if not part or not left:
                break
            if size <= part:
                held.append(int(groups.marks[place]))
                part, left = part - size, left - 1
    if not held:
        candidates = np.concatenate([places for places in several if len(places) > 1] or several)
        held = [int(groups.marks[min(candidates, key=lambda place: (groups.sizes[place], place))])]
    return set(held)


def _apportioned(several: list[NDArray[np.intp]], groups: Groups, room: int) -> list[int]:
    """How many examples each stratum contributes: its share, rounded by largest remainders if it has several groups."""
    counts = [int(groups.sizes[places].sum()) for places in several]
    total = sum(counts)
    parts = [room * count // total for count in counts]
    giving = [number for number, places in enumerate(several) if len(places) > 1]
    giving.sort(key=lambda number: (-(room * counts[number] % total), -counts[number], number))
    for number in giving[: room - sum(parts)]:
        parts[number] += 1
    return parts
