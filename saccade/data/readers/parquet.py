"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from saccade.data.errors import BadRow, DataError, one_line
from saccade.data.extra import required
from saccade.data.readers.base import Reader, readers
from saccade.data.readers.columns import Record, parts
from saccade.data.readers.lines import LONGEST

BATCH = 256
"""How many rows are in memory at a time."""

MOST_BYTES, MOST_GROWTH = 256 << 20, 200
"""A column of a row group that becomes larger than so many bytes, and so many times, is no data but a trap."""


@readers.register("parquet")
class Parquet(Reader):
    """A Parquet table, of which only the columns wanted are read; the line is the row, counted from 1."""

    suffixes: ClassVar = (".parquet",)

    def rows(self) -> Iterator[tuple[int, Record | BadRow]]:
        pyarrow, parquet = required("pyarrow"), required("pyarrow.parquet")
        damage = (pyarrow.ArrowException, OSError, UnicodeDecodeError)
        try:
            table = parquet.ParquetFile(Path(self.source))
            self.names = table.schema_arrow.names
        except damage as error:
            raise DataError(f"{self.name} is not a Parquet file, or is damaged ({one_line(error)[:200]}).") from None
        with table:
            wanted = [str(one) for column in self.choose({}).values() for one in parts(column)]
            outer = {name if name in self.names else name.partition(".")[0] for name in wanted}
            columns = [name for name in self.names if name in outer]
            check_growth(table.metadata, columns, self.name)
            texts = [name for name in columns if is_text(table.schema_arrow.field(name).type)]
        # A long text that many rows share stays one.
        with parquet.ParquetFile(Path(self.source), read_dictionary=texts) as table:
            line = 0
            batches = table.iter_batches(batch_size=BATCH, columns=columns)
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


def check_growth(metadata: Any, columns: list[str], file: str) -> None:
    """Refuses a column of which a few bytes become a great many: Arrow reads parts of it as a whole."""
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
