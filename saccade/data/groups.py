"""Groups of examples that a split keeps together, and strata whose proportions it preserves."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Strata:
    """The labels of each example, whose proportions a split preserves.

    An example with several names belongs to the stratum of the rarest, so that rare names are spread evenly too.
    """

    def __init__(self) -> None:
        self._combinations: dict[tuple[str, ...], int] = {}
        self._examples = array("L")

    def add(self, names: Iterable[str]) -> None:
        """The names of the next example, in any order; there may be none."""
        self._examples.append(self._combinations.setdefault(tuple(names), len(self._combinations)))

    def rarest(self) -> NDArray[np.int64]:
        """(examples,): the rank of each example's rarest name, the rarest of all names first.

        It does not depend on the order of the examples.
        """
        counts: Counter[str] = Counter()
        sizes = np.bincount(np.array(self._examples, dtype=np.int64))
        for names, examples in zip(self._combinations, sizes, strict=True):
            counts.update(dict.fromkeys(names, int(examples)))
        ranks = {name: rank for rank, name in enumerate(sorted(counts, key=lambda name: (counts[name], name)))}
        lowest = [min(map(ranks.__getitem__, names), default=len(ranks)) for names in self._combinations]
        return np.array(lowest, dtype=np.int64)[np.array(self._examples, dtype=np.int64)]


class Groups(NamedTuple):
    """The examples with equal marks, in the order of their marks."""

    marks: NDArray[np.uint64]
    sizes: NDArray[np.int64]
    """How many examples each has."""
    strata: NDArray[np.int64]
    """The rank of its stratum, the rarest first; that of the rarest where its examples differ."""

    @staticmethod
    def of(marks: ArrayLike, strata: NDArray[np.int64] | None = None) -> Groups:
        """The groups of the examples with these marks; all in one stratum unless the examples' strata are given."""
        found, inverse, sizes = np.unique(np.asarray(marks, dtype=np.uint64), return_inverse=True, return_counts=True)
        lowest = np.zeros(len(found), dtype=np.int64)
        if strata is not None and len(strata):
            lowest[:] = strata.max()
            np.minimum.at(lowest, inverse, strata)
        return Groups(found, sizes, lowest)

    def by_stratum(self) -> list[NDArray[np.intp]]:
        """The places of the groups of each stratum, the rarest stratum first."""
        order = np.argsort(self.strata, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(self.strata[order])) + 1) if len(order) else []
