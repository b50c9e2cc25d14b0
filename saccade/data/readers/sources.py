"""From what the user names to the readers for it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from saccade.data.errors import DataError
from saccade.data.readers.base import Reader, readers
from saccade.data.readers.columns import Columns
from saccade.data.readers.files import check_file, expanded
from saccade.data.readers.memory import Rows
from saccade.data.readers.parallel import split


def open_readers(source: Any, columns: Columns, *, header: bool | None = None) -> list[Reader]:
    """A reader for each source, in order.

    Args:
        source: a name, a list of names, or rows in memory.
        columns: the columns wanted.
        header: whether tables begin with a header, if the user says so.
    """
    return [reader_for(one)(one, columns, header=header) for one in sources(source, columns)]


def absolute(source: Any) -> Any:
    """Names of sources, one or a list, that do not depend on the working folder."""
    if isinstance(source, list | tuple):
        return [absolute(name) for name in source]
    name = os.fspath(source)
    return reader_for(name).absolute(name)


def sources(source: Any, columns: Columns) -> list[Any]:
    """The single sources: names, tuples of parallel text files, rows in memory."""
    if isinstance(source, Rows):
        return [source]
    if isinstance(source, str | os.PathLike):
        names = _expanded(os.fspath(source))
        return [_checked(names[0])] if len(names) == 1 else _grouped(names)
    if isinstance(source, Mapping | bytes) or not isinstance(source, Iterable):
        raise DataError(f"Data must be files, a folder or a list of rows; got {type(source).__name__}.")
    if not isinstance(source, Sequence) or not are_names(source, columns):
        return [Rows(source)]
    return _grouped([each for name in source for each in _expanded(os.fspath(name))])


def are_names(items: Sequence[Any], columns: Columns) -> bool:
    """Whether the items of a list name sources, rather than being rows.

    Texts can be rows where there is one role; then they name sources only if one of them is known to.
    """
    if not len(items) or not all(isinstance(item, str | os.PathLike) for item in items):
        return False
    if len(columns.required) != 1 or not all(isinstance(item, str) for item in items):
        return True
    return any(member.takes(item) for item in items for _, member in readers.items())


def reader_for(source: Any) -> type[Reader]:
    """The reader that takes a source."""
    found = [(name, member) for name, member in readers.items() if member.takes(source)]
    found = [pair for pair in found if pair[1].prefix] or [pair for pair in found if not pair[1].fallback] or found
    if len(found) > 1:
        names = ", ".join(name for name, _ in found)
        raise DataError(f"More than one reader can read {source!r}: {names}. Narrow down `takes` in one of them.")
    if not found:
        for name in split(source) if isinstance(source, str) else ():
            check_file(name)
        raise DataError(f"No reader can read {source!r}. Readers: {', '.join(readers.names())}.")
    return found[0][1]


def _expanded(name: str) -> list[str]:
    """The tables that a pattern stands for; names of other sources, such as `hf:`, are not patterns."""
    return expanded(name) if _is_table(name) and reader_for(name).suffixes else [name]


def _checked(name: str) -> str:
    """The name; raises if it does not exist, or if it joins tables."""
    if any(member.takes(name) and not member.fallback and not member.suffixes for _, member in readers.items()):
        return name
    parts = split(name)
    for part in parts:
        check_file(part)
    if len(parts) > 1 and any(_is_table(part) for part in parts):
        raise DataError(f"Commas join parallel text files only. Give tables as a list, '[{', '.join(parts)}]'.")
    return name


def _grouped(names: list[str]) -> list[Any]:
    """A list of plain text files is one source, whose files are parallel."""
    plain = [not _is_table(name) and ("," not in name or os.path.exists(name)) for name in names]
    if len(names) > 1 and any(plain):
        if not all(plain):
            raise DataError(f"Join parallel text files by a comma ('a.en,a.de'); got the list {names}.")
        return [tuple(_checked(name) for name in names)]
    return [_checked(name) for name in names]


def _is_table(name: str) -> bool:
    """Whether a reader other than that of plain text takes the name."""
    return any(member.takes(name) and not member.fallback for _, member in readers.items())
