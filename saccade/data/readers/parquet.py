"""Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from saccade.data.errors import BadRow, DataError
from saccade.data.extra import required
from saccade.data.readers.columns import Columns, as_columns, lookup, unknown

BATCH = 1024


def read_parquet(
    path: Path, columns: Columns | Sequence[str], *, bad: Callable[[BadRow], None]
) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows of a Parquet file, of which only the columns asked for are read; the line is the row, from 1."""
    pyarrow, parquet = required("pyarrow"), required("pyarrow.parquet")
    file, columns = str(path), as_columns(columns, numbered=False)
    try:
        table = parquet.ParquetFile(path)
    except pyarrow.ArrowInvalid as error:
        raise DataError(f"{file} is not a Parquet file ({error}).") from None
    with table:
        names = table.schema_arrow.names
        columns = {role: names[c] if isinstance(c, int) and c < len(names) else c for role, c in columns.items()}
        wanted = [str(c) if c in names else str(c).partition(".")[0] for c in columns.values()]
        for column in wanted:
            if column not in names:
                raise unknown(column, names, file)
        line = 0
        for batch in table.iter_batches(batch_size=BATCH, columns=list(dict.fromkeys(wanted))):
            for record in records(batch):
                line += 1
                try:
                    if isinstance(record, UnicodeDecodeError):
                        raise BadRow(file, line, "the text is not UTF-8", "Write the file again from valid text.")
                    example = lookup(record, columns, file, line)
                except BadRow as row:
                    bad(row)
                else:
                    yield line, example


def records(batch: Any) -> Iterator[dict[str, Any] | UnicodeDecodeError]:
    """The rows as dictionaries; one at a time only where a text in the batch is not UTF-8."""
    try:
        yield from batch.to_pylist()
    except UnicodeDecodeError:
        for row in range(batch.num_rows):
            try:
                yield batch.slice(row, 1).to_pylist()[0]
            except UnicodeDecodeError as error:
                yield error
