"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from saccade.data.errors import BadRow, DataError, one_line
from saccade.data.extra import required
from saccade.data.readers.base import Reader, readers
from saccade.data.readers.columns import Record, parts
from saccade.data.readers.lines import LONGEST
from saccade.data.readers.parts import FilePart

BATCH = 256
"""The maximum number of rows in memory at a time."""

BUFFER = 1 << 20
"""Bytes of a column that are read at a time."""

MOST_BYTES, MOST_GROWTH = 256 << 20, 200
"""A column chunk that expands beyond this many bytes, and by this factor, is rejected as a decompression bomb."""


@readers.register("parquet")
class Parquet(Reader):
    """A Parquet table; only the columns wanted are read, and the line is the row, counted from 1."""

    suffixes: ClassVar = (".parquet",)
    divisible: ClassVar = True

    def rows(self) -> Iterator[tuple[int, Record | BadRow]]:
        pyarrow, parquet = required("pyarrow"), required("pyarrow.parquet")
        damage = (pyarrow.ArrowException, OSError, UnicodeDecodeError)
        with open_table(self.source) as table:
            self.names = table.schema_arrow.names
            wanted = [str(one) for column in self.choose({}).values() for one in parts(column)]
            outer = {name if name in self.names else name.partition(".")[0] for name in wanted}
            columns = [name for name in self.names if name in outer]
            check_growth(table.metadata, columns, self.name)
            texts = [name for name in columns if is_text(table.schema_arrow.field(name).type)]
        # A long text that many rows share stays one.
        with parquet.ParquetFile(Path(self.source), read_dictionary=texts, buffer_size=BUFFER) as table:
            line = 0 if self.part is None else self.part.line - 1
            batches = row_batches(table, self.part, columns)
            while True:
                try:
                    batch = next(batches, None)
                except damage as error:
                    raise DataError(
                        f"{self.name} is damaged after row {line} ({one_line(error)[:200]}): write or copy it again."
                    ) from None
                if batch is None:
                    return
                for record in records(batch):
                    line += 1
                    if isinstance(record, str):
                        fix = "Write the file again from valid values."
                        yield line, BadRow(self.name, line, f"a value cannot be read ({record})", fix)
                    else:
                        yield line, record

    def sample(self) -> list[list[Any]]:
        with open_table(self.source) as table:
            batch = next(row_batches(table), None)
            return [] if batch is None else [list(row.values()) for row in records(batch) if isinstance(row, dict)]

    def parts(self, rows: int) -> Iterator[FilePart]:
        with open_table(self.source) as table:
            count = table.metadata.num_rows
        for start in range(0, count, rows):
            yield FilePart(start + 1, min(rows, count - start))


def open_table(path: str | Path) -> Any:
    """A Parquet file, whose column chunks are read piece by piece: a row group may be larger than memory."""
    pyarrow, parquet = required("pyarrow"), required("pyarrow.parquet")
    try:
        table = parquet.ParquetFile(Path(path), buffer_size=BUFFER)
        _ = table.schema_arrow.names  # which are decoded only now
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not a Parquet file, or is damaged ({one_line(error)[:200]}).") from None
    return table


def row_batches(table: Any, part: FilePart | None = None, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """The rows of a Parquet file, or of a part of it, as Arrow batches; row groups before the part are not read."""
    size = batch_rows(table.metadata)
    if part is None:
        yield from table.iter_batches(batch_size=size, columns=columns)
        return
    counts = [table.metadata.row_group(number).num_rows for number in range(table.metadata.num_row_groups)]
    starts = [0, *accumulate(counts)]
    first, last = part.line - 1, part.line - 1 + part.rows
    groups = [number for number in range(len(counts)) if starts[number] < last and starts[number + 1] > first]
    skip, left = first - starts[groups[0]], part.rows
    for batch in table.iter_batches(batch_size=size, columns=columns, row_groups=groups):
        if skip < batch.num_rows:
            wanted = batch.slice(skip, left)
            yield wanted
            left -= wanted.num_rows
        skip = max(skip - batch.num_rows, 0)
        if not left:
            return


def batch_rows(metadata: Any) -> int:
    """How many rows to read at a time: fewer where they are large."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    each = max((group.total_byte_size // max(group.num_rows, 1) for group in groups), default=0)
    return max(1, min(BATCH, LONGEST // max(each, 1)))


def check_growth(metadata: Any, columns: list[str], file: str) -> None:
    """Rejects a column that expands excessively, since Arrow reads large parts of it at once."""
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for place in range(group.num_columns):
            found = group.column(place)
            name = found.path_in_schema.partition(".")[0]
            small, large = found.total_compressed_size, found.total_uncompressed_size
            if name in columns and large > MOST_BYTES and large > MOST_GROWTH * small:
                raise DataError(
                    f"{file}: column {name!r:.60} of row group {number} has {small:,} bytes that become {large:,}. If "
                    "that is right, write the file again with smaller row groups."
                )


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is that of text or bytes."""
    types = required("pyarrow").types
    return any(check(kind) for check in (types.is_string, types.is_large_string, types.is_binary))


def records(batch: Any) -> Iterator[dict[str, Any] | str]:
    """The rows as dictionaries, or why one cannot be read (text that is not UTF-8, a time out of Python's range)."""
    sizes = text_sizes(batch)
    try:
        if sizes.sum() <= LONGEST:
            yield from batch.to_pylist()
            return
    except (ValueError, OverflowError):  # Arrow's errors of values are ValueErrors too
        pass
    for row in range(batch.num_rows):
        if sizes[row] > LONGEST:
            yield f"text of {sizes[row]:,} bytes"
            continue
        try:
            yield batch.slice(row, 1).to_pylist()[0]
        except (ValueError, OverflowError) as error:
            yield "text that is not UTF-8" if isinstance(error, UnicodeDecodeError) else one_line(error)[:200]


def text_sizes(batch: Any) -> NDArray[np.int64]:
    """How many bytes of text each row has."""
    compute = required("pyarrow.compute")
    sizes = np.zeros(batch.num_rows, dtype=np.int64)
    for column in batch.columns:
        if required("pyarrow").types.is_dictionary(column.type):
            lengths = compute.binary_length(column.dictionary).take(column.indices)
            sizes += lengths.fill_null(0).to_numpy(zero_copy_only=False)
    return sizes
