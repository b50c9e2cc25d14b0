"""Folds of cross-validation."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saccade.data.errors import DataError
from saccade.data.groups import Groups


def choose_folds(marks: ArrayLike, count: int, strata: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """(examples,): the number of each example's fold, from 0.

    Examples with equal marks share a fold. The folds are equally large, and each stratum is spread evenly over them,
    as far as groups of equal marks allow. They are the same each time, whatever the order of the examples.

    Args:
        marks: of all examples.
        count: how many folds there are.
        strata: the stratum of each example, if they have some.
    """
    groups = Groups.of(marks, strata)
    if len(groups.marks) < count:
        raise DataError(
            f"{int(groups.sizes.sum()):,} examples with {len(groups.marks):,} different inputs cannot be split into "
            f"{count:,} folds: use fewer folds, or add data."
        )
    chosen = np.zeros(len(groups.marks), dtype=np.int64)
    sizes = [0] * count
    for places in groups.by_stratum():
        own = [0] * count
        for place in sorted(
            places, key=lambda place: (-groups.sizes[place], place)
        ):  # the largest are hardest to place
            fold = min(range(count), key=lambda number: (own[number], sizes[number], number))
            chosen[place] = fold
            own[fold] += int(groups.sizes[place])
            sizes[fold] += int(groups.sizes[place])
    return chosen[np.searchsorted(groups.marks, np.asarray(marks, dtype=np.uint64))]
