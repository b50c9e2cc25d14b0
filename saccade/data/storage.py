"""Encoded examples in memory-mapped Arrow files: they may be larger than memory, and are encoded only once."""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from saccade.data.arrow import array_of, cast, cells, has_arrays, merged
from saccade.data.chunks import chunks
from saccade.data.errors import DataError, one_line
from saccade.data.extra import required

SIZE = "__size__"
FINGERPRINT = b"saccade.fingerprint"
ROWS = 4096
"""How many examples at most are in memory before they are written."""


class Stored(Sequence[dict[str, Any]]):
    """Examples in an Arrow file, read on demand."""

    def __init__(self, path: str | Path) -> None:
        pyarrow = required("pyarrow")
        self.path = Path(path)
        try:
            with pyarrow.memory_map(str(path)) as source:
                reader = pyarrow.ipc.open_file(source)
                self._batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
        except (pyarrow.ArrowException, OSError) as error:
            raise DataError(
                f"{path} is not a complete Arrow file ({one_line(error)}): delete it, and it will be written again."
            ) from None
        self.fingerprint = (reader.schema.metadata or {}).get(FINGERPRINT, b"").decode()
        self._names = [name for name in reader.schema.names if name != SIZE]
        self._plain = not any(has_arrays(reader.schema.field(name).type) for name in self._names)
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
        for number, batch in enumerate(self._batches):
            if self._plain:  # Arrow is faster for many rows at a time
                yield from batch.select(self._names).to_pylist()
            else:
                yield from (self[self._starts[number] + row] for row in range(batch.num_rows))

    def sizes(self) -> NDArray[np.int64]:
        """The sizes that `store` kept: (examples,) or (examples, sides)."""
        if not self._batches:
            return np.zeros(0, dtype=np.int64)
        return np.array([size for batch in self._batches for size in batch.column(SIZE).to_pylist()], dtype=np.int64)

    def content(self) -> str:
        """A digest of the examples."""
        digest = hashlib.blake2b(digest_size=16)
        for batch in self._batches:
            digest.update(batch.serialize())
        return digest.hexdigest()

    def __reduce__(self) -> tuple[type[Stored], tuple[Path]]:
        return Stored, (self.path,)


def fingerprint_of(path: str | Path) -> str:
    """The fingerprint of a stored file; empty if there is none, or if it is damaged."""
    try:
        return Stored(path).fingerprint if Path(path).is_file() else ""
    except DataError:
        return ""


def content_of(path: str | Path) -> str:
    """A digest of the examples in a stored file, whatever its fingerprint; empty if there is none, or if damaged."""
    try:
        found = Stored(path) if Path(path).is_file() else None
    except DataError:
        found = None
    return "" if found is None else found.content()


def store(
    examples: Iterable[Mapping[str, Any]],
    path: str | Path,
    *,
    size: Callable[[dict[str, Any]], int | tuple[int, ...]] | None = None,
    fingerprint: str = "",
    exact: bool = False,
) -> Stored:
    """Writes encoded examples to an Arrow file, a few at a time, and opens it.

    A file with the same (non-empty) fingerprint is opened as it is, without reading the examples. The file appears
    under its name only when it is complete.

    Args:
        examples: dictionaries of numbers, texts, bytes, NumPy arrays, and lists and dictionaries of these; all with the
            same keys and types. A key that an example lacks comes back as None.
        path: of the file; its folder is created if necessary.
        size: what an example costs in a batch, kept for `Stored.sizes`.
        fingerprint: identifies the data and everything that was done to it.
        exact: whether numbers in lists keep all 64 bits; 32 are enough for token ids and features.
    """
    path = Path(path)
    if fingerprint and path.exists():
        try:
            found = Stored(path)
        except DataError:  # incomplete: made again
            found = None
        if found is not None and found.fingerprint == fingerprint:
            return found
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    rows = (dict(example) if size is None else {**example, SIZE: size(dict(example))} for example in examples)
    writer = _Writer(part, {FINGERPRINT: fingerprint.encode()}, exact=exact)
    try:
        for chunk in chunks(rows, ROWS):
            writer.write(chunk)
        writer.close()
        part.replace(path)
    finally:
        writer.abandon()
    return Stored(path)


class _Writer:
    """An Arrow file whose types emerge as examples arrive: empty lists may be followed by lists of numbers.

    When a chunk needs a wider type than those before it, what is already written is copied to that type.
    """

    def __init__(self, path: Path, metadata: dict[bytes, bytes], *, exact: bool) -> None:
        self.exact = exact
        self.path, self.old = path, path.with_name(f"{path.name}.old")
        self.schema = required("pyarrow").schema([], metadata=metadata)
        self._open()

    def write(self, chunk: list[dict[str, Any]]) -> None:
        """Appends examples."""
        pyarrow = required("pyarrow")
        names = list(dict.fromkeys(name for row in chunk for name in row))
        columns = {name: array_of([row.get(name) for row in chunk], name, exact=self.exact) for name in names}
        types = {field.name: field.type for field in self.schema}
        for name, column in columns.items():
            types[name] = merged(types[name], column.type, name) if name in types else column.type
        self._widen(pyarrow.schema(list(types.items()), metadata=self.schema.metadata))
        columns = {name: columns.get(name, pyarrow.nulls(len(chunk))) for name in types}
        self._append(pyarrow.RecordBatch.from_pydict(columns))

    def close(self) -> None:
        """Completes the file and flushes it to disk."""
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def abandon(self) -> None:
        """Deletes what was written."""
        self._file.close()
        self.path.unlink(missing_ok=True)
        self.old.unlink(missing_ok=True)

    def _open(self) -> None:
        self._file = open(self.path, "wb")  # noqa: SIM115 (closed by `close` or `abandon`)
        self._writer = required("pyarrow").ipc.new_file(self._file, self.schema)

    def _append(self, batch: Any) -> None:
        arrays = [cast(batch.column(field.name), field.type) for field in self.schema]
        self._writer.write_batch(required("pyarrow").RecordBatch.from_arrays(arrays, schema=self.schema))

    def _widen(self, schema: Any) -> None:
        if schema == self.schema:
            return
        pyarrow = required("pyarrow")
        self._writer.close()
        self._file.close()
        self.path.replace(self.old)
        before, self.schema = self.schema, schema
        self._open()
        with pyarrow.memory_map(str(self.old)) as source:
            reader = pyarrow.ipc.open_file(source)
            for number in range(reader.num_record_batches):
                batch = reader.get_batch(number)
                new = {name: pyarrow.nulls(batch.num_rows) for name in schema.names if name not in before.names}
                old = {name: batch.column(name) for name in before.names}
                self._append(pyarrow.RecordBatch.from_pydict({**old, **new}))
        self.old.unlink()
