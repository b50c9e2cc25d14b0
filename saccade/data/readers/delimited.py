"""TSV and CSV."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from saccade.data.errors import BadRow, DataError
from saccade.data.readers.columns import Columns, as_columns, checked, not_in_header, places
from saccade.data.readers.lines import raw_lines, read_lines

Row = tuple[int, list[str] | BadRow]
"""A line number with the fields of the row that ends there, or with what is wrong."""


def tsv_rows(path: Path) -> Iterator[Row]:
    """Fields between tabs, nothing quoted: a quotation mark is a character like any other."""
    for number, line in enumerate(read_lines(path), start=1):
        yield number, line.split("\t")


def csv_rows(path: Path) -> Iterator[Row]:
    """Fields between commas as RFC 4180 has them: "quoted, if need be", with doubled quotes and newlines inside."""
    reader = csv.reader(raw_lines(path), strict=True)
    while True:
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            fix = 'Put text with commas or quotes in "...", and double the quotes inside.'
            yield reader.line_num, BadRow(str(path), reader.line_num, f"not a CSV row ({error})", fix)
        else:
            yield reader.line_num, fields


def read_delimited(
    path: Path,
    columns: Columns | Sequence[str],
    *,
    rows: Callable[[Path], Iterator[Row]],
    header: bool | None,
    bad: Callable[[BadRow], None],
) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows of a table in a text file.

    Whether the first line is a header is never guessed from its content: it is one if `header` says so or, with
    `header=None`, if a column is asked for by name.
    """
    file = str(path)
    by_name = as_columns(columns, numbered=header is not True)
    said = header is not None
    if header is None:
        header = any(isinstance(column, str) for column in by_name.values())
    lines = rows(path)
    names = header_of(lines, file) if header else None
    for column in by_name.values():
        if names is not None and isinstance(column, str) and column not in names:
            raise not_in_header(column, by_name, names, file)
    numbers = places(by_name, names, file)
    width = len(names) if names else None
    for line, fields in lines:
        try:
            if isinstance(fields, BadRow):
                raise fields
            if line == 1 and not said and [field.strip().lower() for field in fields] == [r.lower() for r in by_name]:
                shown = ", ".join(map(repr, fields))
                raise DataError(
                    f"{file} begins with {shown}: say whether that is a header (--data.header true, in Python "
                    "header=True) or a pair (--data.header false)."
                )
            if width is None and len(fields) > max(numbers.values()):
                width = len(fields)
            if len(fields) != width:
                needed = f"{width} as in the first row" if width else f"at least {max(numbers.values()) + 1}"
                fix = "Separate columns by one tab." if rows is tsv_rows else "Quote text with commas."
                raise BadRow(file, line, f"{len(fields)} columns instead of {needed}", fix)
            example = {role: checked(fields[number], role, file, line) for role, number in numbers.items()}
        except BadRow as row:
            bad(row)
        else:
            yield line, example


def header_of(lines: Iterator[Row], file: str) -> list[str]:
    """The names in the first row."""
    for _, names in lines:
        if isinstance(names, BadRow):
            raise names
        return names
    raise DataError(f"{file} is empty, but should begin with a header.")
