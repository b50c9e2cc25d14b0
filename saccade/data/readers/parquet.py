"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from saccade.data.errors import BadRow, DataError, one_line
from saccade.data.extra import required
from saccade.data.readers.base import Reader, readers
from saccade.data.readers.columns import Record, parts

BATCH = 256
"""How many rows are in memory at a time."""


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
            line = 0
            batches = table.iter_batches(batch_size=BATCH, columns=[name for name in self.names if name in outer])
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


def records(batch: Any) -> Iterator[dict[str, Any] | str]:
    """The rows as dictionaries, or why one cannot be read (text that is not UTF-8, a time out of Python's range)."""
    try:
        yield from batch.to_pylist()
    except (ValueError, OverflowError):  # Arrow's errors of values are ValueErrors too
        for row in range(batch.num_rows):
            try:
                yield batch.slice(row, 1).to_pylist()[0]
            except (ValueError, OverflowError) as error:
                yield "text that is not UTF-8" if isinstance(error, UnicodeDecodeError) else one_line(error)[:200]
