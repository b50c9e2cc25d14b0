"""Which column of the data plays which role."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from saccade.data.errors import BadRow, DataError
from saccade.registry import nearest

Columns = Mapping[str, str | int]
"""From a role ("source") to a column's name ("en") or its number, counted from 0."""

MAY_BE_EMPTY = ("alignment",)
"""Roles without which an example is whole: two sentences may have no link."""


def as_columns(columns: Columns | Sequence[str], *, numbered: bool) -> dict[str, str | int]:
    """The mapping that a mere list of roles stands for: their places, or columns that are called like them."""
    if isinstance(columns, str):
        raise TypeError(f"columns is a mapping or a list of roles, got the string {columns!r}: write [{columns!r}].")
    if not columns:
        raise ValueError("columns is empty: name at least one, such as {'source': 'en', 'target': 'de'}.")
    if not isinstance(columns, Mapping):
        return {role: place if numbered else role for place, role in enumerate(columns)}
    for role, column in columns.items():
        if isinstance(column, bool) or not isinstance(column, str | int) or (isinstance(column, int) and column < 0):
            raise ValueError(f"columns[{role!r}] is a name or a number from 0 on, got {column!r}.")
    return dict(columns)


def places(columns: Mapping[str, str | int], header: Sequence[str] | None, file: str) -> dict[str, int]:
    """The number of each role's column, looked up in the header where it is given by name."""
    found = {}
    for role, column in columns.items():
        if isinstance(column, str):
            if header is None:
                raise DataError(f"{file} has no header, so {role!r} cannot be column {column!r}: {by_number(columns)}.")
            if column not in header:
                raise unknown(column, header, file)
            if list(header).count(column) > 1:
                raise DataError(f"{file} has more than one column {column!r}: give its number.")
            column = list(header).index(column)
        elif header is not None and column >= len(header):
            raise DataError(f"{file} has {len(header)} columns, counted from 0: there is no column {column}.")
        found[role] = column
    return found


def by_number(columns: Mapping[str, str | int]) -> str:
    """How columns are given that have no names."""
    numbers = [f"{role}={place}" for place, role in enumerate(columns)]
    training = ", ".join(numbers).replace("=", ": ")
    return (
        f"give its number, counted from 0, as --columns {','.join(numbers)} (in training: --data.columns "
        f"'{{{training}}}')"
    )


def not_in_header(column: str, columns: Mapping[str, str | int], header: Sequence[str], file: str) -> DataError:
    """The error for a column that the first line does not name, which may be no header at all."""
    named = [name if len(name) <= 30 else f"{name[:27]}..." for name in header]
    close = next(iter(difflib.get_close_matches(column, header, n=1)), None)
    hint = "" if close is None else f" Did you mean {close!r}?"
    return DataError(
        f"{file} has no column {column!r}.{hint} Its first line, read as the header, has: "
        f"{', '.join(map(repr, named[:8]))}{', ...' if len(named) > 8 else ''}. If that is no header, "
        f"{by_number(columns)}."
    )


def unknown(column: str, choices: Iterable[str], file: str) -> DataError:
    """The error for a column that is not there."""
    return DataError(f"{file} has no column {column!r}.{nearest(column, choices)}")


def lookup(record: Mapping[str, Any], columns: Columns, file: str, line: int) -> dict[str, str]:
    """The roles' texts from a record with named fields; `"translation.en"` reaches into a nested one."""
    return {role: as_text(reach(record, column, file, line), role, file, line) for role, column in columns.items()}


def reach(record: Mapping[str, Any], column: str | int, file: str, line: int) -> Any:
    """The value of a column, which may lie inside another one."""
    if isinstance(column, int):
        raise DataError(f"The columns of {file} have names: give one instead of {column}.{nearest('', record)}")
    if column in record:
        return record[column]
    outer, _, inner = column.partition(".")
    if inner and isinstance(record.get(outer), Mapping):
        return reach(record[outer], inner, file, line)
    if line == 1:  # then the name is wrong rather than the row
        raise unknown(column, record, file)
    raise BadRow(file, line, f"there is no column {column!r}", f"The row has: {', '.join(record) or 'nothing'}.")


def as_text(value: Any, role: str, file: str, line: int) -> str:
    """The value as text, if it is text or a whole number (a label)."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        return checked(value, role, file, line)
    if value is None:
        raise empty(role, file, line)
    raise BadRow(file, line, f"the {role} is not text but {type(value).__name__}", "Store it as a string.")


def checked(text: str, role: str, file: str, line: int) -> str:
    """The text, if there is any and it was decodable (undecodable bytes arrive as lone surrogates)."""
    if role not in MAY_BE_EMPTY and (not text or text.isspace()):
        raise empty(role, file, line)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raw = text[error.start : error.end].encode("utf-8", "surrogateescape" if is_escaped(text) else "surrogatepass")
        problem = f"the {role} is not UTF-8 (bytes {raw[:4]!r})"
        raise BadRow(file, line, problem, "Convert the file, for example with iconv -t UTF-8.") from None
    return text


def is_escaped(text: str) -> bool:
    """Whether the surrogates in the text stand for bytes of a file (and not for "\\ud83d" of a JSON string)."""
    return all("\udc80" <= character <= "\udcff" for character in text if "\ud800" <= character <= "\udfff")


def empty(role: str, file: str, line: int) -> BadRow:
    """The error for a role without text."""
    return BadRow(
        file, line, f"the {role} is empty", "Fill it in, or leave it out (of training data: --data.bad_rows skip)."
    )
