"""Examples from any source."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Literal

from saccade.data.cell import Cell, FieldLike, value_of
from saccade.data.errors import BadRow, DataError, Skipped
from saccade.data.long_tables import GROUP, gathered, gathering
from saccade.data.readers import Reader, open_readers
from saccade.data.readers.columns import Column, Columns, check_columns
from saccade.data.readers.folder import PATH, FolderOfFiles
from saccade.data.readers.likely import Kind
from saccade.data.readers.memory import InMemory, Rows
from saccade.data.readers.parts import FilePart

Check = Callable[[Mapping[str, Any], Cell], None]
"""Whether the values of an example belong together."""


def read_rows(rows: Sequence[Any], fields: Mapping[str, FieldLike], *, start: int = 1) -> list[dict[str, Any]]:
    """Rows in memory as examples, empty texts among them: less work than `Examples`, for the few rows of a request.

    Args:
        rows: as `Examples` takes them.
        fields: for each role the field that reads it.
        start: the number of the first row.
    """
    absent = absent_values(fields)
    reader = InMemory(source=Rows(rows), columns=Columns(None, fields, optional=absent))
    return [
        absent
        | {
            role: value_of(fields[role], raw, Cell(reader.name, line, role, reader.folder), blank=raw is not None)
            for role, raw in reader.by_role(row, line).items()
        }
        for line, row in enumerate(rows, start=start)
    ]


def absent_values(fields: Mapping[str, FieldLike]) -> dict[str, None]:
    """The values of optional fields that are missing from the data."""
    return {role: None for role, field in fields.items() if getattr(field, "optional", False)}


class Examples:
    """Examples as `{role: value}`, read as a stream each time they are iterated over.

    | source | format |
    | --- | --- |
    | `pairs.tsv` | columns separated by tabs, nothing quoted |
    | `pairs.csv` | columns separated by commas, quoted as in RFC 4180 |
    | `pairs.jsonl`, `pairs.ndjson` | one JSON object a line; `translation.en` reaches into a nested one |
    | `pairs.parquet` | a Parquet table |
    | `train.en,train.de`, or a list of the two | plain text files of any other suffix, line by line |
    | `recordings/` | a folder: each file is a row with `path`, `name`, `stem` and `label` (its sub-folder) |
    | `hf:folder:train`, `hf:name@config:train` | a dataset of the `datasets` library, in a folder or on the hub |
    | `dates:train:20000` | the built-in dates (see `saccade.data.dates`): a split, how many, and a seed if not 0 |
    | `amazon:reviews.json.gz`, `yelp:review.json` | reviews as they are published: user, item, rating, text, time |
    | a list of dictionaries, tuples or bare values | rows in memory (see `saccade.data.readers.Rows`) |

    Text files may be gzipped (`pairs.tsv.gz`). A list of sources is read one after the other. Cells may be paths,
    relative to the folder of the table. `saccade.data.readers.readers` takes further formats.

    Args:
        source: one of the above, or a list.
        fields: for each role the field that reads it.
        columns: from roles to columns, by name, by number from 0, or as a list of several columns. By default, tables
            without names are read in the order of the roles, others by equal names. Text files are named by their
            suffix ("en" for `train.en`).
        header: whether TSV and CSV files begin with a header. If None, they do if a column is given by name.
        bad_rows: "error" raises a `BadRow` at a row that cannot be used, "skip" leaves it out; see `skipped`.
        optional: roles that may be missing from the data; examples without a value for them do not have the key.
        check: called with each example and its place, raises `cell.bad(problem, fix)` for values that do not belong
            together.
        part: the rows to read, of a source that is a single file; see `saccade.data.readers.Reader.parts`.
        blank: whether empty texts are read, as inputs of a prediction are; otherwise a row with one is bad.
        group: the column that says which rows belong together. If a field takes several rows as one value
            (`Field.gather`), the rows of a group are one example.
        unread: roles whose columns may follow those of the others without being read.
    """

    def __init__(
        self,
        source: Any,
        fields: Mapping[str, FieldLike],
        *,
        columns: Mapping[str, Column] | None = None,
        header: bool | None = None,
        bad_rows: Literal["error", "skip"] = "error",
        optional: Collection[str] = (),
        check: Check | None = None,
        part: FilePart | None = None,
        blank: bool = False,
        group: str | None = None,
        unread: Collection[str] = (),
    ) -> None:
        if bad_rows not in ("error", "skip"):
            raise DataError(f"data.bad_rows must be 'error' or 'skip', got {bad_rows!r}.")
        self.fields, self.bad_rows, self.check, self.blank = dict(fields), bad_rows, check, blank
        self.skipped = Skipped()
        """The bad rows that the last reading left out."""
        self._settings = repr((columns, header, bad_rows, *([group] if group else [])))
        self._long = gathering(fields, columns, group)
        if self._long and part is not None:
            raise DataError(f"The rows of one {group} may be anywhere in a table, so it cannot be read in parts.")
        paragraphs = any(getattr(field, "paragraphs", False) for field in fields.values())
        self._absent = absent_values(fields)
        may_lack = [*optional, *self._absent]
        roles = [*fields, GROUP] if self._long and GROUP not in fields else [*fields]
        kinds: dict[str, Kind] = {role: getattr(field, "holds", "") for role, field in fields.items()}
        wanted = Columns(
            check_columns(columns), roles, optional=may_lack, paragraphs=paragraphs, kinds=kinds, unread=unread
        )
        for role, column in (wanted.given or {}).items():
            if isinstance(column, list | tuple) and (check_width := getattr(fields.get(role), "check_columns", None)):
                check_width(role, len(column))
        self.readers = open_readers(source, wanted, header=header)
        for reader in self.readers:  # a wrong column shows before any work starts
            reader.part = part
            for _, row in reader.examples():
                if not isinstance(row, BadRow):
                    self._check_paths(reader)
                    break
                self._bad(row)

    def _check_paths(self, reader: Reader) -> None:
        """Raises if a role takes the path of each file of a folder, but its values are not files."""
        taken = (
            [role for role, column in reader.chosen.items() if column == PATH]
            if isinstance(reader, FolderOfFiles)
            else []
        )
        for role in taken:
            if getattr(self.fields.get(role), "suffixes", None) == () and PATH not in reader.columns.mentioned():
                raise DataError(
                    f"{reader.name} is a folder, but a {role} is not a file: name a table or a text file. "
                    f"To read the names of its files as the {role}, add --data.columns {role}=name."
                )

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for _, _, example in self.located():
            yield example

    def located(self) -> Iterator[tuple[str, int, dict[str, Any]]]:
        """The examples with their file and line."""
        for reader, line, example in self.read():
            yield reader.name, line, example

    def read(self) -> Iterator[tuple[Reader, int, dict[str, Any]]]:
        """The examples with the reader, which has the whole row as its `record`, and the line."""
        self.skipped = Skipped()
        count = 0
        rows = ((reader, line, row) for reader in self.readers for line, row in reader.examples())
        for reader, line, row in gathered(rows, self.fields, self._bad) if self._long else rows:
            try:
                if isinstance(row, BadRow):
                    raise row
                example = self._absent | {
                    role: value_of(self.fields[role], raw, cell, blank=self.blank)
                    for role, raw in row.items()
                    if role in self.fields
                    for cell in [Cell(reader.where(role), line, role, reader.folder)]
                }
                if self.check is not None:
                    self.check(example, Cell(reader.name, line, "row", reader.folder))
            except BadRow as bad:
                self._bad(bad.with_advice(header=line == 1 and reader.maybe_header()))
            else:
                count += 1
                yield reader, line, example
        if self.skipped.count and not count and all(reader.part is None for reader in self.readers):
            if self.skipped.count == 1:
                raise DataError(f"The only row cannot be used. {self.skipped.first[0]}")
            raise DataError(f"None of the {self.skipped.count} rows can be used. The first: {self.skipped.first[0]}")

    def unread(self) -> list[str]:
        """The columns that no role takes, if the data has some."""
        return list(dict.fromkeys(name for reader in self.readers for name in reader.unread()))

    def ordered(self) -> list[str]:
        """How columns with unknown names were assigned to roles in order."""
        return list(dict.fromkeys(taken for reader in self.readers for taken in reader.ordered()))

    def fingerprint(self) -> str:
        """Changes if the data, or the way it is read, changes."""
        marks = [self._settings, *(f"{reader.name}\n{reader.stamp()}" for reader in self.readers)]
        return hashlib.blake2b("\n".join(marks).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()

    def _bad(self, row: BadRow) -> None:
        if self.bad_rows == "error":
            raise row
        self.skipped.add(row)
