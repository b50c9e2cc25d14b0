"""Which examples of the data are trained on, validated on and tested on."""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from saccade.data.cell import FieldLike
from saccade.data.corpus import FOLD, GROUP, Corpus, choose_held_out, mark
from saccade.data.errors import DataError
from saccade.data.folds import choose_folds
from saccade.data.groups import Strata
from saccade.data.held_out import MOST_HELD_OUT
from saccade.data.splits import last_of_each, latest
from saccade.fields import Label
from saccade.registry import nearest
from saccade.tasks import Example, Task

T = TypeVar("T")


class Purpose(IntEnum):
    """What an example is for."""

    TRAIN = 0
    VALID = 1
    TEST = 2


def fields_of(task: Task, data: Corpus) -> dict[str, FieldLike]:
    """The fields of a training example: the task's, and its fold and group if there are columns for them."""
    found: dict[str, FieldLike] = {**task.fields}
    for setting, role, column in (("folds", FOLD, data.folds), ("group", GROUP, data.group)):
        if isinstance(column, str):
            if role in task.fields:
                raise DataError(f"data.{setting} reads a column as the {role!r}, a role of this task: rename the role.")
            found[role] = Label()
    return found


class Split:
    """The part of the data that each example belongs to.

    It is the same each time. Equal inputs stay together or, if the data has groups, the examples of each group; label
    proportions are preserved.

    Args:
        examples: all of the training data, read once.
        task: knows which inputs are equal, and the labels whose proportions are preserved.
        data: the folds, if there are any.
    """

    def __init__(self, examples: Iterable[Example], task: Task, data: Corpus) -> None:
        marks, strata, folds = array("Q"), Strata(), array("L")
        self.times, self.owners = array("d"), list[str]()
        names: dict[str, int] = {}
        for example in examples:
            marks.append(task.mark(example) if data.group is None else mark(example, [GROUP]))
            strata.add(task.strata(example))
            if data.split != "random":
                moment, owner = task.origin(example)
                self.times.append(math.nan if moment is None else moment)
                self.owners.append(owner)
            if isinstance(data.folds, str):
                folds.append(names.setdefault(example[FOLD], len(names)))
        self.data = data
        self.contiguous = task.contiguous
        self.marks = np.array(marks, dtype=np.uint64)
        self.strata = strata.rarest()
        self.names = sorted(names, key=_in_order)
        """The names of the folds, in order."""
        self.folds: NDArray[np.int64] | None = None
        """(examples,): the number of each example's fold."""
        if isinstance(data.folds, int):
            self.names = [str(number) for number in range(data.folds)]
            self.folds = choose_folds(self.marks, data.folds, self.strata)
        elif data.folds is not None:
            places = {name: place for place, name in enumerate(self.names)}
            self.folds = np.array([places[name] for name in names], dtype=np.int64)[np.array(folds, dtype=np.int64)]

    def __len__(self) -> int:
        return len(self.marks)

    def inputs(self) -> int:
        """The number of different inputs."""
        return len(np.unique(self.marks))

    def scattered(self) -> int:
        """The number of inputs that occur in several folds, which only a column of folds can bring about."""
        if self.folds is None:
            return 0
        pairs = np.unique(np.stack([self.marks, self.folds.astype(np.uint64)]), axis=1)
        return int((np.unique(pairs[0], return_counts=True)[1] > 1).sum())

    def tested(self, fold: str | None) -> NDArray[np.bool_]:
        """(examples,): whether each is in a fold; none is without folds."""
        if self.folds is None:
            return np.zeros(len(self), dtype=bool)
        if fold is None:
            raise DataError("data.fold is missing: say which fold to evaluate on, or use --folds for all of them.")
        if fold not in self.names:
            raise DataError(f"No example has the fold {fold!r:.60}.{nearest(fold, self.names)}")
        return np.equal(self.folds, self.names.index(fold))

    def parts(self, share: float) -> NDArray[np.int8]:
        """(examples,): the part of each; a share of the examples outside the test fold is for validation."""
        if share and self.data.split != "random":
            later = self._later(share)
            return np.where(later, Purpose.VALID, Purpose.TRAIN).astype(np.int8)
        if share and self.contiguous and self.folds is None:  # the end of the text, so that neither part has gaps
            first = len(self) - min(MOST_HELD_OUT, max(1, round(share * len(self))))
            return np.where(np.arange(len(self)) >= first, Purpose.VALID, Purpose.TRAIN).astype(np.int8)
        test = self.tested(self.data.fold)
        found = np.where(test, Purpose.TEST, Purpose.TRAIN).astype(np.int8)
        held = choose_held_out(self.marks[~test], share, self.strata[~test]) if share else set[int]()
        found[np.isin(self.marks, np.array(sorted(held), dtype=np.uint64)) & ~test] = Purpose.VALID
        return found

    def _later(self, share: float) -> NDArray[np.bool_]:
        """(examples,): what is held out by time."""
        times = np.frombuffer(self.times, dtype=np.float64)
        if self.data.split == "leave_one_out":
            return last_of_each(self.owners, times)
        return latest(times, min(MOST_HELD_OUT, max(1, round(share * len(times)))))

    def identity(self) -> str:
        """Changes if the examples or their folds change, regardless of order."""
        rows = np.stack([self.marks, (self.folds if self.folds is not None else 0 * self.strata).astype(np.uint64)])
        return hashlib.blake2b(rows[:, np.lexsort(rows)].tobytes(), digest_size=16).hexdigest()


def chosen(examples: Iterable[T], wanted: Sequence[bool] | NDArray[np.bool_]) -> Iterator[T]:
    """The examples that are wanted, in their order."""
    return (example for example, yes in zip(examples, wanted, strict=True) if yes)


def _in_order(name: str) -> tuple[int, float, str]:
    """Numbers by their value, before other names."""
    return (0, int(name), name) if name.isdecimal() and len(name) < 19 else (1, 0, name)
