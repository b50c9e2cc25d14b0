"""Rows in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from saccade.data.cell import shown
from saccade.data.errors import BadRow
from saccade.data.marks import digest
from saccade.data.readers.base import Reader, readers
from saccade.data.readers.columns import ABSENT, Column, Columns, Record, listed, parts, reach
from saccade.data.readers.likely import SAMPLE

NAME = "the examples in memory"


class Rows:
    """Marks a list as rows in memory, for texts that could be mistaken for file names."""

    def __init__(self, rows: Iterable[Any]) -> None:
        rows = frame_rows(rows)
        self.rows: Iterable[Any] = list(rows) if isinstance(rows, Iterator) else rows


def frame_rows(data: Any) -> Any:
    """The rows of a pandas DataFrame, which would iterate over its column names; anything else unchanged."""
    frame = type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns")
    return data.to_dict("records") if frame else data


@readers.register("memory")
class InMemory(Reader):
    """Rows that are dictionaries, tuples in the order of the roles or, for a single role, bare values.

    A dictionary has the columns that the user named for files, or the roles themselves as keys.
    """

    may_be_empty = True

    def __init__(self, source: Rows, columns: Columns, *, header: bool | None = None) -> None:
        super().__init__(NAME, columns, header=header)
        self.source, self.folder = source, Path()

    @classmethod
    def takes(cls, source: Any) -> bool:
        return isinstance(source, Rows)

    def rows(self) -> Iterator[tuple[int, Record | BadRow]]:
        for line, row in enumerate(self.source.rows, start=1):
            try:
                yield line, self.by_role(row, line)
            except BadRow as bad:
                yield line, bad

    def by_role(self, row: Any, line: int) -> dict[str, Any]:
        """The raw values of a row."""
        columns = self.columns
        if isinstance(row, Mapping):
            return self.from_mapping(row, line)
        if len(columns.required) == 1 and not (isinstance(row, tuple) and len(row) in (1, len(columns.roles))):
            return {columns.required[0]: row}
        if not isinstance(row, Sequence) or isinstance(row, str | bytes):
            problem = f"{shown(row)} is not a row of {' and '.join(columns.required)}"
            raise BadRow(NAME, line, problem, "Give a tuple of these, or a dictionary.")
        if len(row) not in (len(columns.required), len(columns.roles)):
            problem = f"the row has {len(row)} values instead of {len(columns.required)}"
            raise BadRow(NAME, line, problem, f"Give a tuple of {' and '.join(columns.required)}, or a dictionary.")
        return dict(zip(columns.roles if len(row) == len(columns.roles) else columns.required, row, strict=True))

    def from_mapping(self, row: Mapping[Any, Any], line: int) -> dict[str, Any]:
        """The raw values of a dictionary."""
        found = {}
        for role in self.columns.roles:
            column = (self.columns.given or {}).get(role, role)
            values = [reach(row, one) for one in parts(column)]
            if not any(value is ABSENT for value in values):
                found[role] = values if isinstance(column, list | tuple) else values[0]
            elif role in row:
                found[role] = row[role]
            elif role not in self.columns.optional:
                has = listed(list(map(str, row))) or "nothing"
                raise BadRow(NAME, line, f"there is no {role!r}", f"The row has: {has}.{self._how(row)}")
        return found

    def _how(self, row: Mapping[Any, Any]) -> str:
        """How to say which column is which, if the user said nothing."""
        if self.columns.given is not None or len(row) < len(self.columns.required):
            return ""
        first = [each for each in islice(self.source.rows, SAMPLE) if isinstance(each, Mapping)]
        rows = [[each.get(name) for name in row] for each in first]
        return f" Say which is which: columns={self.columns.likely(list(map(str, row)), rows)}."

    def choose(self, first: Record) -> dict[str, Column]:
        return {role: role for role in self.columns.roles}

    def unread(self) -> list[str]:
        first = next(iter(self.source.rows), None)
        read = {str(one).partition(".")[0] for column in (self.columns.given or {}).values() for one in parts(column)}
        known = {*read, *self.columns.roles}
        return [name for name in map(str, first) if name not in known] if isinstance(first, Mapping) else []

    def stamp(self) -> str:
        found = hashlib.blake2b(digest_size=16)
        for row in self.source.rows:
            found.update(digest(row))
        return found.hexdigest()
