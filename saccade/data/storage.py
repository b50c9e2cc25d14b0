"""Encoded examples in memory-mapped Arrow files: larger than memory is fine, and reading again costs nothing."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from saccade.data.errors import DataError
from saccade.data.extra import required

SIZE = "__size__"
FINGERPRINT = b"saccade.fingerprint"
ROWS = 4096
"""How many examples are written, and kept in memory, at a time."""


class Stored(Sequence[dict[str, Any]]):
    """Examples in an Arrow file, read where and when they are asked for."""

    def __init__(self, path: str | Path) -> None:
        pyarrow = required("pyarrow")
        self.path = Path(path)
        try:
            with pyarrow.memory_map(str(path)) as source:
                reader = pyarrow.ipc.open_file(source)
                self._batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
        except pyarrow.ArrowInvalid as error:
            raise DataError(f"{path} is not a whole Arrow file ({error}): delete it, and it is made again.") from None
        self.fingerprint = (reader.schema.metadata or {}).get(FINGERPRINT, b"").decode()
        self._names = [name for name in reader.schema.names if name != SIZE]
        self._cells = [{name: cells(batch.column(name)) for name in self._names} for batch in self._batches]
        self._starts: list[int] = [0, *accumulate(batch.num_rows for batch in self._batches)]

    def __len__(self) -> int:
        return self._starts[-1]

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        index = int(index) + (len(self) if index < 0 else 0)
        if not 0 <= index < len(self):
            raise IndexError(f"There are {len(self)} examples in {self.path}, got index {index}.")
        number = bisect_right(self._starts, index) - 1
        row = index - self._starts[number]
        return {name: cell(row) for name, cell in self._cells[number].items()}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self._batches:
            yield from batch.select(self._names).to_pylist()

    def sizes(self) -> NDArray[np.int64]:
        """The sizes that `store` was asked to keep: (examples,) or (examples, sides)."""
        if not self._batches:
            return np.zeros(0, dtype=np.int64)
        return np.array([size for batch in self._batches for size in batch.column(SIZE).to_pylist()], dtype=np.int64)

    def __reduce__(self) -> tuple[type[Stored], tuple[Path]]:
        return Stored, (self.path,)


def store(
    examples: Iterable[Mapping[str, Any]],
    path: str | Path,
    *,
    size: Callable[[dict[str, Any]], int | tuple[int, ...]] | None = None,
    fingerprint: str = "",
) -> Stored:
    """Writes encoded examples to an Arrow file, a few at a time, and opens it.

    A file with the same (not empty) fingerprint is opened as it is, without a look at the examples. The file appears
    under its name only when it is complete.

    Args:
        examples: dictionaries of numbers, texts, and lists of these; all alike.
        path: of the file; its folder is made if need be.
        size: what an example costs in a batch, kept for `Stored.sizes`.
        fingerprint: stands for the data and everything that was done to it.
    """
    pyarrow = required("pyarrow")
    path = Path(path)
    if fingerprint and path.exists():
        try:
            found = Stored(path)
        except DataError:  # torn: made again
            found = None
        if found is not None and found.fingerprint == fingerprint:
            return found
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    rows = (dict(example) if size is None else {**example, SIZE: size(dict(example))} for example in examples)
    try:
        first = list(islice(rows, ROWS))
        schema = pyarrow.RecordBatch.from_pylist(first).schema if first else pyarrow.schema([])
        schema = pyarrow.schema([field.with_type(narrow(field.type)) for field in schema])
        schema = schema.with_metadata({FINGERPRINT: fingerprint.encode()})
        with open(part, "wb") as file:
            with pyarrow.ipc.new_file(file, schema) as writer:
                chunk = first
                while chunk:
                    writer.write_batch(pyarrow.RecordBatch.from_pylist(chunk, schema=schema))
                    chunk = list(islice(rows, ROWS))
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return Stored(path)


def cells(column: Any) -> Callable[[int], Any]:
    """The function from a row to its value in a column; for flat lists of numbers many times faster than Arrow's."""
    types = required("pyarrow").types
    kind = column.type
    flat = types.is_list(kind) and (types.is_integer(kind.value_type) or types.is_floating(kind.value_type))
    if not flat or column.null_count or column.values.null_count:
        return lambda row: column[row].as_py()
    offsets, values = column.offsets.to_numpy(), column.values.to_numpy()
    return lambda row: values[offsets[row] : offsets[row + 1]].tolist()


def narrow(kind: Any) -> Any:
    """The type with 32 bits for the numbers inside lists (token ids, features), in place of Python's 64."""
    pyarrow = required("pyarrow")
    if not pyarrow.types.is_list(kind):
        return kind
    inner = kind.value_type
    if pyarrow.types.is_null(inner) or pyarrow.types.is_int64(inner):
        return pyarrow.list_(pyarrow.int32())
    return pyarrow.list_(pyarrow.float32() if pyarrow.types.is_float64(inner) else narrow(inner))
