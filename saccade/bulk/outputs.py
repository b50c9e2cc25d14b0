"""Output files: the rows of a block with the columns of its answers, in the format of the input."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from saccade.artifacts import sync_folder
from saccade.bulk.blocks import Block, format_of
from saccade.data.chunks import HEAVY
from saccade.data.errors import DataError
from saccade.data.extra import required
from saccade.data.readers import Reader
from saccade.data.readers.parquet import open_table, row_batches


class Row(NamedTuple):
    """A row of the input with its answer."""

    line: int
    record: Any
    """The row as its reader gave it: an object, or cells."""
    values: dict[str, Any]
    """The columns of the answer, in JSON's types."""
    texts: list[str]
    """The same as texts."""


class Output:
    """Writes the rows of one block.

    Args:
        path: the file to write.
        block: the rows of the input.
        reader: read them; it knows the names of the columns.
        names: of the answer's columns.
    """

    def __init__(self, path: Path, block: Block, reader: Reader, names: Sequence[str]) -> None:
        self.path, self.block, self.reader, self.names = path, block, reader, list(names)
        known = reader.record if reader.names is None and isinstance(reader.record, Mapping) else reader.names or ()
        taken = [name for name in names if name in known]
        if taken:
            raise DataError(
                f"{block.file} already has a column {taken[0]!r}: rename the new ones, as with --column-prefix model_"
            )

    def write(self, rows: Sequence[Row]) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def abort(self) -> None:
        """Gives up the file after an error."""
        raise NotImplementedError


class JsonLinesOutput(Output):
    """An object a line."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._file = open(self.path, "xb")  # noqa: SIM115 (closed by `close`)

    def write(self, rows: Sequence[Row]) -> None:
        for row in rows:
            for name in self.names:
                if name in row.record:
                    raise DataError(
                        f"{self.block.file}, line {row.line}: the row already has {name!r}: "
                        "rename the new columns with --column-prefix."
                    )
            found = {**row.record, **row.values}
            try:
                line = json.dumps(found, ensure_ascii=False).encode()
            except UnicodeEncodeError:  # half a character, which JSON can only hold in escapes
                line = json.dumps(found).encode()
            self._file.write(line + b"\n")

    def close(self) -> None:
        close_synced(self._file)

    def abort(self) -> None:
        self._file.close()


class DelimitedOutput(Output):
    """CSV or TSV, with a header if the input has one; bytes that are not UTF-8 stay what they are."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._file = open(self.path, "x", encoding="utf-8", errors="surrogateescape", newline="")  # noqa: SIM115
        tabs = format_of(self.block.file) == ".tsv"
        self._write = self._tabs if tabs else csv.writer(self._file, lineterminator="\n").writerow
        if self.reader.names is not None:
            self._write([*self.reader.names, *self.names])

    def write(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self._write([*row.record, *row.texts])

    def _tabs(self, cells: Sequence[str]) -> None:
        """Nothing is quoted in TSV: white space of any kind becomes a space."""
        self._file.write("\t".join(cell.replace("\t", " ").replace("\n", " ") for cell in cells) + "\n")

    def close(self) -> None:
        close_synced(self._file)

    def abort(self) -> None:
        self._file.close()


class ParquetOutput(Output):
    """The columns of the input with their types, as Arrow reads them, and those of the answers."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._table = open_table(self.block.file)
        self._batches = row_batches(self._table, self.block.part)
        self._batch, self._line = None, self.block.part.line
        self._writer: Any = None
        self._pending: list[Any] = []

    def write(self, rows: Sequence[Row]) -> None:
        for batch in self._taken([row.line for row in rows]):
            self._add(batch, rows[: batch.num_rows])
            rows = rows[batch.num_rows :]

    def close(self) -> None:
        if self._writer is None and not self._pending:  # no row could be used
            self._add(self._table.schema_arrow.empty_table(), [])
        self._flush()
        self._writer.close()
        self._table.close()
        with open(self.path, "rb") as written:
            os.fsync(written.fileno())

    def abort(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._table.close()

    def _taken(self, lines: list[int]) -> Iterator[Any]:
        """Of the input's batches, the rows of these lines."""
        while lines:
            if self._batch is None or lines[0] >= self._line + self._batch.num_rows:
                self._line += 0 if self._batch is None else self._batch.num_rows
                self._batch = next(self._batches)
                continue
            inside = [line for line in lines if line < self._line + self._batch.num_rows]
            yield self._batch.take(required("pyarrow").array([line - self._line for line in inside]))
            lines = lines[len(inside) :]

    def _add(self, batch: Any, rows: Sequence[Row]) -> None:
        """Rows of the input with their answers; written when there are many bytes of them."""
        table = required("pyarrow").Table.from_batches([batch]) if rows else batch
        for place, name in enumerate(self.names):
            values, texts = [row.values[name] for row in rows], [row.texts[place] for row in rows]
            table = table.append_column(name, column_of(values, texts))
        self._pending.append(table)
        if sum(pending.nbytes for pending in self._pending) > HEAVY:
            self._flush()

    def _flush(self) -> None:
        if not self._pending:
            return
        table = required("pyarrow").concat_tables(self._pending)
        self._pending = []
        if self._writer is None:
            self._writer = required("pyarrow.parquet").ParquetWriter(str(self.path), table.schema)
        self._writer.write_table(table)


def column_of(values: Sequence[Any], texts: Sequence[str]) -> Any:
    """A column of answers for Arrow: numbers, lists of texts, or texts."""
    pyarrow = required("pyarrow")
    if values and isinstance(values[0], int | float):
        return pyarrow.array(values, pyarrow.float64())
    if values and isinstance(values[0], list):
        return pyarrow.array([list(map(str, value)) for value in values], pyarrow.list_(pyarrow.string()))
    return pyarrow.array(texts, pyarrow.string())


OUTPUTS: dict[str, type[Output]] = {
    ".parquet": ParquetOutput,
    ".jsonl": JsonLinesOutput,
    ".csv": DelimitedOutput,
    ".tsv": DelimitedOutput,
}


@contextlib.contextmanager
def new_output(folder: Path, block: Block, reader: Reader, names: Sequence[str]) -> Iterator[Output]:
    """An output file that appears under its name when it is complete, and not at all if something fails.

    Two processes may write the same block, if one was presumed dead: each has its own file until it is complete.
    """
    path = block.output(folder)
    hidden = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    output = OUTPUTS[format_of(block.file)](hidden, block, reader, names)
    try:
        yield output
        output.close()
        os.replace(hidden, path)
        sync_folder(folder)
    except BaseException:
        output.abort()
        hidden.unlink(missing_ok=True)
        raise


def close_synced(file: Any) -> None:
    """Closes a file once its content is on the disk."""
    file.flush()
    os.fsync(file.fileno())
    file.close()
