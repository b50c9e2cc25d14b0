"""Splits that respect time: what comes later is never used to predict what came before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saccade.data.errors import DataError

TIMES = "Name its column (--data.columns time=COLUMN), or split at random (--data.split random)."


def latest(times: ArrayLike, count: int) -> NDArray[np.bool_]:
    """(examples,): whether each is one of the latest `count`.

    Examples of one moment stay together, so that all others are strictly earlier; a few more than `count` may be
    chosen.

    Args:
        times: of all examples, in any unit.
        count: how many to choose.
    """
    moments = _known(times)
    if not count or not len(moments):
        return np.zeros(len(moments), dtype=bool)
    cut = np.sort(moments)[-min(count, len(moments))]
    found: NDArray[np.bool_] = moments >= cut
    if found.all():
        raise DataError(f"All {len(moments):,} examples would be held out: none is earlier than the others.")
    return found


def last_of_each(owners: Sequence[str], times: ArrayLike) -> NDArray[np.bool_]:
    """(examples,): whether each is the last of its owner; an owner's only example is not.

    Args:
        owners: the owner of each example.
        times: of all examples; the later of two at the same time is the one further down.
    """
    moments = _known(times)
    order = np.argsort(moments, kind="stable").tolist()
    last: dict[str, int] = {}
    several: set[str] = set()
    for place in order:
        if owners[place] in last:
            several.add(owners[place])
        last[owners[place]] = place
    found = np.zeros(len(moments), dtype=bool)
    found[[place for owner, place in last.items() if owner in several]] = True
    return found


def _known(times: ArrayLike) -> NDArray[np.float64]:
    moments = np.asarray(times, dtype=np.float64)
    missing = int(np.isnan(moments).sum())
    if missing:
        raise DataError(f"{missing:,} of {len(moments):,} examples have no time, but the split is by time. {TIMES}")
    return moments
