"""Long tables: many rows for each example, such as one for each code of each visit of a patient."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from saccade.data.cell import Cell, text_of
from saccade.data.errors import BadRow, DataError
from saccade.data.readers import Reader
from saccade.data.readers.columns import Column

GROUP = "group"
"""The role of the column that says which rows belong together."""

Located = tuple[Reader, int, dict[str, Any] | BadRow]
"""A row by role, with its reader and line."""


def gathering(fields: Mapping[str, Any], columns: Mapping[str, Column] | None, group: str | None) -> bool:
    """Whether the rows of a group are one example: if a field reads several columns of many rows."""
    given = columns or {}
    long = [
        role
        for role, field in fields.items()
        if getattr(field, "gathers", False) and isinstance(given.get(role), list | tuple)
    ]
    if long and group is None:
        listed = "+".join(map(str, given[long[0]]))  # type: ignore[arg-type]
        raise DataError(
            f"The {long[0]} takes the columns {listed} of a long table: say which column tells its examples apart, for "
            "example --data.group patient."
        )
    return bool(long)


def gathered(
    rows: Iterable[Located], fields: Mapping[str, Any], bad: Callable[[BadRow], None]
) -> Iterator[tuple[Reader, int, dict[str, Any] | BadRow]]:
    """One row for each group, in the order in which the groups begin; it has the reader and line of its first row.

    All rows are kept in memory, since those of a group may be anywhere; equal texts are kept once.

    Args:
        rows: of a long table, with the role `group`.
        fields: which put their raw values together with `Field.gather`.
        bad: called with a row that cannot be used; its group is read without it.
    """
    known: dict[Any, Any] = {}
    groups: dict[str, tuple[Reader, int, dict[str, list[Any]]]] = {}
    for reader, line, row in rows:
        try:
            if isinstance(row, BadRow):
                raise row
            name = text_of(row.get(GROUP), Cell(reader.where(GROUP), line, GROUP, reader.folder)).strip()
        except BadRow as problem:
            bad(problem)
            continue
        _, _, several = groups.setdefault(name, (reader, line, {}))
        for role, raw in row.items():
            several.setdefault(role, []).append(_shared(raw, known))
    for name, (reader, line, several) in groups.items():
        try:
            found: dict[str, Any] | BadRow = {
                role: fields[role].gather(raws, name, Cell(reader.where(role), line, role, reader.folder))
                for role, raws in several.items()
                if role in fields
            }
        except BadRow as problem:
            found = problem
        yield reader, line, found


def _shared(raw: Any, known: dict[Any, Any]) -> Any:
    """The raw value, with its texts replaced by equal ones that are already in memory."""
    if isinstance(raw, str):
        return known.setdefault(raw, raw)
    return tuple(_shared(part, known) for part in raw) if isinstance(raw, list) else raw
