"""What a reader is."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from saccade.data.errors import BadRow, DataError
from saccade.data.readers.columns import ABSENT, Column, Columns, Record, listed, parts, pick, reach, unknown
from saccade.data.readers.files import check_file, stamp
from saccade.data.readers.likely import SAMPLE, UNKNOWN
from saccade.data.readers.lines import offsets, suffix
from saccade.data.readers.parts import FilePart
from saccade.registry import Registry


class Reader:
    """Reads the rows of one source: a file, a folder, a dataset, rows in memory.

    A new reader sets the suffixes of its files (or implements `takes`) and implements `rows`:

        @readers.register("conll")
        class Conll(Reader):
            suffixes = (".conllu",)

            def rows(self):
                for line, sentence in sentences(self.source):
                    yield line, {"text": sentence.text, "tags": sentence.tags}

    Args:
        source: what to read: a name as the user wrote it.
        columns: the columns wanted.
        header: whether the file begins with a header, if the format leaves that open.
    """

    suffixes: ClassVar[tuple[str, ...]] = ()
    """The suffixes of the files that it reads; `.gz` may follow them."""

    prefix: ClassVar[str] = ""
    """The prefix of its sources, if they have one; the suffix is then ignored."""

    fallback: ClassVar[bool] = False
    """Whether it only reads sources that no other reader takes."""

    divisible: ClassVar[bool] = False
    """Whether some consecutive rows can be read without those before them; see `part` and `parts`."""

    may_be_empty: ClassVar[bool] = False
    """Whether a source without rows is fine."""

    def __init__(self, source: Any, columns: Columns, *, header: bool | None = None) -> None:
        self.source, self.columns, self.header = source, columns, header
        self.name = str(source)
        self.folder = Path(self.name).parent
        self.names: Sequence[str] | None = None
        """The names of all columns, if they are known before the first row."""
        self.chosen: dict[str, Column] = {}
        """The column of each role, once a row has been read."""
        self.part: FilePart | None = None
        """The rows to read, if not all of them."""
        self.record: Record = {}
        """The whole row that `examples` yielded last."""
        if self.suffixes:
            check_file(self.name)

    @classmethod
    def takes(cls, source: Any) -> bool:
        """Whether this reader is the one for the source; that it exists is checked later."""
        if not isinstance(source, str):
            return False
        if cls.prefix:
            return source.startswith(cls.prefix)
        return suffix(source) in cls.suffixes and not os.path.isdir(source)

    @classmethod
    def absolute(cls, source: str) -> str:
        """The name of a source that does not depend on the working folder."""
        return os.path.abspath(source)

    def rows(self) -> Iterator[tuple[int, Record | BadRow]]:
        """The line number of each row with its columns and raw values, or with the error if it cannot be read.

        A divisible reader starts with the first row of `part`.
        """
        raise NotImplementedError

    def parts(self, rows: int) -> Iterator[FilePart]:
        """The file in parts of `rows` rows; the last one may be shorter."""
        lines, count = list[int](), 0
        for count, (line, _) in enumerate(self.rows(), start=1):
            if count % rows == 1 or rows == 1:
                lines.append(line)
        sizes = [min(rows, count - start) for start in range(0, count, rows)]
        yield from map(FilePart, lines, sizes, offsets(Path(self.source), lines))

    def examples(self) -> Iterator[tuple[int, dict[str, Any] | BadRow]]:
        """The rows with raw values by role in place of columns."""
        self.chosen = {}
        line = 0
        for line, row in self.rows() if self.part is None else islice(self.rows(), self.part.rows):
            if isinstance(row, BadRow):
                yield line, row
                continue
            if not self.chosen:
                self.chosen = self.choose(row)
            try:
                picked: dict[str, Any] | BadRow = pick(row, self.chosen, self.columns.optional, self.name, line)
            except BadRow as bad:
                picked = bad
            self.record = row
            yield line, picked
        if not line and not self.may_be_empty:
            raise DataError(f"{self.name} has no rows: write the data to it, or name another file.")

    def choose(self, first: Record) -> dict[str, Column]:
        """The column of each role, given the first row: columns of equal names, unless the user says otherwise.

        A column that the first row lacks is an error of the configuration rather than of that row.
        """
        columns, names = self.columns, self.names if self.names is not None else list(first)
        chosen: dict[str, Column] = {}
        lost: list[str] = []
        of_lost: list[str] = []
        for role in columns.roles:
            column: Column = role if columns.given is None else columns.given.get(role, ABSENT)  # type: ignore[arg-type]
            if column is ABSENT:
                continue
            single = [self._named(one) for one in parts(column)]
            for one in single:
                found = one in names if self.names is not None else reach(first, one) is not ABSENT
                if not found and str(one).partition(".")[0] not in names and role not in columns.optional:
                    lost.append(str(one))
                    of_lost.append(role)
            chosen[role] = single if isinstance(column, list | tuple) else single[0]
        if lost:
            how = ""
            if columns.given is None and len(names) >= len(columns.required):
                how = f" Say which is which, as {columns.example_named(names, self.sample())}."
            elif columns.given is not None:
                how = f" Say which to read, as {columns.example_instead(of_lost, names, self.sample())}."
            raise unknown(lost, names, self.name, how)
        return chosen

    def sample(self) -> list[list[Any]]:
        """The first rows, in the order of the columns' names, for advice on columns."""
        rows = [row for _, row in islice(self.rows(), SAMPLE) if isinstance(row, Mapping)]
        names = list(self.names if self.names is not None else rows[0] if rows else ())
        return [[row.get(name) for name in names] for row in rows]

    def unread(self) -> list[str]:
        """The columns that no role takes, once a row has been read; those without a name by their numbers."""
        names = list(self.names if self.names is not None else self.record)
        read = {one for column in self.chosen.values() for one in parts(column)}
        if isinstance(self.record, Mapping):
            read |= {str(one).partition(".")[0] for one in read}
            return [name for name in names if name not in read]
        names = names if self.names is not None else [f"column {place}" for place in range(len(names))]
        return [name for place, name in enumerate(names) if place not in read]

    def ordered(self) -> list[str]:
        """How columns with unknown names were assigned to roles in order: `'body' as text`."""
        return []

    def maybe_header(self) -> bool:
        """Whether the last row may be an undeclared header."""
        return False

    def where(self, role: str) -> str:
        """The file that a role's values come from."""
        return self.name

    def stamp(self) -> str:
        """Changes if the source changes."""
        return stamp(self.name)

    def _named(self, column: str | int) -> str | int:
        if isinstance(column, str):
            return column
        if self.names is None:
            names = self.columns.example([UNKNOWN] * len(self.columns.required))
            raise DataError(f"The columns of {self.name} have names: give them in place of numbers, as {names}.")
        if column >= len(self.names):
            raise DataError(
                f"{self.name} has {len(self.names)} columns, counted from 0: there is no column {column}. It has: "
                f"{listed(self.names)}."
            )
        return self.names[column]


readers: Registry[Reader] = Registry("reader", base=Reader, home="saccade.data.readers")
