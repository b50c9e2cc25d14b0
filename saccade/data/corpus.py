"""The data of a configuration."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

from saccade.data.cell import FieldLike
from saccade.data.errors import DataError
from saccade.data.examples import Check, Examples
from saccade.data.held_out import choose_held_out
from saccade.data.long_tables import GROUP
from saccade.data.marks import mark
from saccade.data.readers.columns import Column, check_columns
from saccade.data.readers.parts import FilePart
from saccade.registry import nearest, noting_arguments

__all__ = ["GROUP", "Corpus", "Examples", "choose_held_out", "mark"]

HELD_OUT = 0.05
SPLITS = ("random", "time", "leave_one_out")
FOLD = "fold"
"""The role of a column that names folds."""
FEWEST_TO_HOLD_OUT = 100
"""With fewer examples in memory, nothing is held out by default."""


@noting_arguments
class Corpus:
    """The examples for training and validation; see `saccade.data.examples.Examples` for their formats.

    Args:
        train: what to train on: pairs.tsv, .csv, .jsonl, .parquet, two text files as train.en,train.de, a folder, or a
            list.
        valid: what to validate on, in the same formats.
        held_out: without valid, the share of the training examples to validate on, at most 1000; 0.05 by default, but 0
            for fewer than 100 examples in memory. Examples with equal inputs stay together, and label proportions are
            preserved.
        split: how examples are held out: "random"; "time", the latest ones; or "leave_one_out", the last one of each
            user. The last two are for tasks whose examples have times.
        folds: for cross-validation, the number of parts that the training examples are split into, or the name of the
            column that names the part of each example. `saccade train --folds` sets it.
        fold: the one of these parts that is not trained on; from 0, or a name from the column.
        group: a column of groups that no split separates, such as patient or speaker. In
            a long table, where an input takes several rows (visits), the rows of a group are one example.
        columns: which column plays which role, by name, by number from 0, or as a list of several columns; such as
            {source: en, target: de} or {source: [lemma, features], target: form}.
        header: whether TSV and CSV files begin with a header; by default they do if a column is given by name.
        bad_rows: "error" stops at a row that cannot be used, "skip" leaves it out, counted and listed.
    """

    def __init__(
        self,
        *,
        train: list[str] | str | None = None,
        valid: list[str] | str | None = None,
        held_out: float | None = None,
        split: Literal["random", "time", "leave_one_out"] = "random",
        folds: int | str | None = None,
        fold: int | str | None = None,
        group: str | None = None,
        columns: Any = None,  # checked below, with a message in the user's terms
        header: bool | None = None,
        bad_rows: Literal["error", "skip"] = "error",
    ) -> None:
        if held_out is not None and not 0.0 <= held_out < 1.0:
            raise DataError(f"held_out must be a share from 0 to less than 1, got {held_out}.")
        if split not in SPLITS:
            raise DataError(f"split: unknown {split!r}.{nearest(split, SPLITS)}")
        if split != "random" and folds is not None:
            raise DataError(f"folds are drawn at random: leave out split={split} or folds.")
        if split != "random" and group is not None:
            raise DataError(f"group keeps rows together, which split={split} may separate: use one of them.")
        if isinstance(folds, str) and folds.isdecimal():
            folds = int(folds)
        if isinstance(folds, int):
            fold = _numbered(folds, fold)
        elif folds is None and fold is not None:
            raise DataError(f"fold needs folds, the number of folds; got only fold={fold!r:.60}.")
        self.train = train
        self.valid = valid
        self.held_out = held_out
        self.split = split
        self.folds = folds
        self.fold = None if fold is None else str(fold)
        self.group = group
        self.columns = check_columns(columns)
        self.header = header
        self.bad_rows = bad_rows

    def share(self, in_memory: int | None = None) -> float:
        """The share of the training examples to hold out; `in_memory` is their number, if they are not in files."""
        if self.held_out is not None:
            return self.held_out
        return 0.0 if in_memory is not None and in_memory < FEWEST_TO_HOLD_OUT else HELD_OUT

    def read(
        self,
        source: Any,
        fields: Mapping[str, FieldLike],
        *,
        optional: Collection[str] = (),
        extras: Mapping[str, FieldLike] | None = None,
        check: Check | None = None,
        part: FilePart | None = None,
        blank: bool = False,
        unread: Collection[str] = (),
    ) -> Examples:
        """The examples of a source, read like the training data.

        If a column names folds or groups, `fields` may have the roles `fold` and `group`, and other columns are found
        by the names of their roles unless the user says otherwise.

        Args:
            source: files, a folder, or rows in memory.
            fields: for each role the field that reads it.
            optional: roles that may be missing from the data.
            extras: further roles, which are read if `columns` names them, and which may be missing from the data.
            check: whether the values of an example belong together.
            part: the rows to read, of a source that is a single file.
            blank: whether empty texts are read, as inputs of a prediction are.
            unread: roles whose columns may follow without being read, such as the targets of a prediction.
        """
        extra = {role: field for role, field in (extras or {}).items() if role in (self.columns or {})}
        given = ((FOLD, self.folds), (GROUP, self.group))
        named: dict[str, Column] = {role: column for role, column in given if isinstance(column, str)}
        columns: dict[str, Column] = {
            **({role: role for role in fields} if named else {}),
            **named,
            **(self.columns or {}),
        }
        return Examples(
            source,
            {**fields, **extra},
            columns=columns or None,
            header=self.header,
            bad_rows=self.bad_rows,
            optional=[*optional, *extra],
            check=check,
            part=part,
            blank=blank,
            group=self.group,
            unread=unread,
        )


def _numbered(folds: int, fold: int | str | None) -> int | None:
    """The number of a fold, if there is such a fold."""
    if folds < 2:
        raise DataError(f"folds is the number of folds, 2 or more, or the name of a column; got {folds}.")
    if fold is None:
        return None
    number = int(fold) if str(fold).isdecimal() and len(str(fold)) < 10 else folds
    if not 0 <= number < folds:
        raise DataError(f"fold is from 0 to {folds - 1} with {folds} folds, got {fold!r:.60}.")
    return number
