"""TSV and CSV."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar

from saccade.data.cell import shown
from saccade.data.errors import BadRow, DataError
from saccade.data.readers.base import Reader, readers
from saccade.data.readers.columns import Column, Columns, Record, by_position, listed, parts, positions
from saccade.data.readers.csv_rows import Row, csv_rows
from saccade.data.readers.header import IDENTIFIER, choose_from_header, looks_like_header, looks_like_row
from saccade.data.readers.likely import SAMPLE
from saccade.data.readers.lines import numbered_lines
from saccade.data.readers.parts import FilePart


class Delimited(Reader):
    """A table in a text file.

    The first line is a header if the user says so or gives a column by name. It is never guessed; a first line that
    looks like a header but is not read as one gets a warning.
    """

    divisible: ClassVar = True

    fix: ClassVar[str]
    """How columns are separated."""

    others: ClassVar[Mapping[str, str]]
    """Wrong separators, and what to do about them."""

    def __init__(self, source: Any, columns: Columns, *, header: bool | None = None) -> None:
        super().__init__(source, columns, header=columns.by_name if header is None else header)
        self.suspicious = header is None and not self.header
        """Whether a warning about a header is still due."""
        self.doubtful = bool(header) and not columns.by_name
        """Whether a warning about a declared header that looks like an example is still due."""
        self.first_rows: list[list[str]] = []
        """Those that advice on columns stands on."""

    def fields(self, part: FilePart | None = None) -> Iterator[Row]:
        """The lines with their cells, from the beginning or from that of a part."""
        raise NotImplementedError

    def rows(self) -> Iterator[tuple[int, Record | BadRow]]:
        lines = self.fields()
        if self.header:
            self.names = self._header(lines)
        start = sample(lines)
        self.first_rows = [cells for _, cells in start if not isinstance(cells, BadRow)]
        if self.header and not start:
            raise DataError(
                f"{self.name} has no rows: its only line is the header ({listed(self.names or ())}). If that is a row, "
                "set --data.header no and give columns by number."
            )
        if self.suspicious and self.part is None and start:
            self._warn(start[0][0])
        if self.doubtful and self.part is None:
            self._doubt()
        width = None if self.names is None else len(self.names)
        if self.part is not None:  # as wide as the file's first row, which is in another part
            wide = (len(cells) for _, cells in start if not isinstance(cells, BadRow) and len(cells) >= self._least())
            width = next(wide, None) if width is None else width
            start, lines = [], self.fields(self.part)
        for line, cells in chain(start, lines):
            if isinstance(cells, BadRow):
                yield line, cells
                continue
            least = self._least()
            if width is None and len(cells) >= least:
                width = len(cells)
            yield line, cells if len(cells) == width else self._odd(line, cells, width, least)

    def choose(self, first: Record) -> dict[str, Column]:
        if self.columns.given is not None:
            return positions(self.columns, self.names, self.name, self.first_rows)
        if self.names is not None:
            return choose_from_header(self.columns, self.names, self.name, self.first_rows)
        return by_position(self.columns, len(first))

    def unread(self) -> list[str]:
        if self.columns.given is None and self.names is None:  # a warning has said so
            return []
        return super().unread()

    def ordered(self) -> list[str]:
        if self.names is None or self.columns.given is not None:
            return []
        taken = [(self.names[place], role) for role, place in self.chosen.items() if isinstance(place, int)]
        return [f"{shown(name)} as {role}" for name, role in taken if name != role]

    def maybe_header(self) -> bool:
        return not self.header and all(IDENTIFIER.fullmatch(str(cell).strip()) for cell in self.record)

    def _least(self) -> int:
        if self.columns.given is None:
            return len(self.columns.required)
        wanted = [column for role in self.columns.required for column in parts(self.columns.given[role])]
        return 1 + max((column for column in wanted if isinstance(column, int)), default=0)

    def _odd(self, line: int, cells: list[str], width: int | None, least: int) -> BadRow:
        if not any(cells):
            return BadRow(self.name, line, "the line is empty", "--data.bad_rows skip leaves such lines out.")
        count = f"{len(cells)} column{'s' if len(cells) != 1 else ''}"
        if width is None:
            otherwise = self._separated_otherwise(cells)
            if self.columns.given is not None and len(cells) > 1 and otherwise is None:
                return BadRow(self.name, line, f"there is no column {least - 1}", f"It has {count}, counted from 0.")
            roles = f" ({', '.join(self.columns.required)})" if least > 2 and self.columns.given is None else ""
            return BadRow(self.name, line, f"{count}, but at least {least} are needed{roles}", otherwise or self.fix)
        fix = f"{self.fix} --data.bad_rows skip leaves such lines out."
        return BadRow(self.name, line, f"{count} instead of {width}, as in the first row", fix)

    def _header(self, lines: Iterator[Row]) -> list[str]:
        for _, names in lines:
            if isinstance(names, BadRow):
                raise names
            names = [name.strip() for name in names]
            fix = self._separated_otherwise(names)
            if fix and (self._least() > 1 or self.columns.by_name) and names[0] not in self.columns.mentioned():
                raise DataError(f"{self.name} has one column in its header ({listed(names)}). {fix}")
            return names
        raise DataError(f"{self.name} is empty: write the data to it, or name another file.")

    def _separated_otherwise(self, cells: list[str]) -> str | None:
        """What to do about a line that seems to have its columns separated by something else."""
        if len(cells) != 1:
            return None
        mark = max(self.others, key=cells[0].count)
        return self.others[mark] if mark in cells[0] else None

    def _doubt(self) -> None:
        self.doubtful = False
        names, rows = self.names or [], self.first_rows
        if not all(role in names for role in self.columns.required) and looks_like_row(names, rows):
            warnings.warn(
                f"{Path(self.name).name}, line 1 is read as a header but looks like an example: {listed(names)}. If it "
                "is one, set --data.header no.",
                stacklevel=2,
            )

    def _warn(self, line: int) -> None:
        self.suspicious = False
        rows, columns, file = self.first_rows, self.columns, Path(self.name).name
        if not rows:
            return
        wide = columns.given is None and len(rows[0]) > max(columns.read_widths)
        read = columns.first_read()
        if line == 1 and looks_like_header(rows[0], rows[1:], columns.roles):
            of_these = f" Of its {len(rows[0])} columns {read}." if wide else ""
            enough = columns.given is not None or len(rows[0]) in columns.usual_widths
            warnings.warn(
                f"{file}, line 1 looks like a header but is read as an example: {listed(rows[0])}.{of_these} Name the "
                f"columns, as {columns.example_named(rows[0], rows[1:])}{', or set --data.header yes' * enough}; if it "
                "is an example, set --data.header no.",
                stacklevel=2,
            )
        elif wide:
            warnings.warn(
                f"{file} has {len(rows[0])} columns; {read}: {listed(rows[0])}. To read others, give their "
                f"numbers, counted from 0, as {columns.example_further(rows)}; 0+1 reads two as one text.",
                stacklevel=2,
            )


def sample(lines: Iterator[Row]) -> list[Row]:
    """The first rows, up to one that cannot be read, since reading on after that may be slow."""
    found: list[Row] = []
    for row in islice(lines, SAMPLE + 1):
        found.append(row)
        if isinstance(row[1], BadRow):
            break
    return found


@readers.register("tsv")
class Tsv(Delimited):
    """Columns separated by tabs, nothing quoted: a quotation mark is a character like any other."""

    suffixes: ClassVar = (".tsv",)
    fix = "Separate columns by one tab."
    others: ClassVar = {
        ",": "Separate columns by one tab; if they are separated by commas, name the file .csv.",
        ";": "If its columns are separated by semicolons, save it again with tabs.",
    }

    def fields(self, part: FilePart | None = None) -> Iterator[Row]:
        for number, line in numbered_lines(Path(self.source), part):
            yield number, line if isinstance(line, BadRow) else line.split("\t")


@readers.register("csv")
class Csv(Delimited):
    """Columns separated by commas, quoted as in RFC 4180."""

    suffixes: ClassVar = (".csv",)
    fix = "Quote text that contains commas."
    others: ClassVar = {
        "\t": "If its columns are separated by tabs, name the file .tsv.",
        ";": "If its columns are separated by semicolons, save it again with commas.",
    }

    def fields(self, part: FilePart | None = None) -> Iterator[Row]:
        return csv_rows(Path(self.source), part)
