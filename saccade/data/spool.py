"""A temporary copy of examples, so that their files are read only once."""

from __future__ import annotations

import contextlib
import pickle
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from saccade.data.chunks import chunks

IN_MEMORY = 64 << 20
"""Bytes that stay in memory; the rest goes to disk."""

CHUNK = 256
"""Examples that are read at a time."""


class Spool(Iterable[dict[str, Any]]):
    """A copy of examples that can be iterated over many times, in memory or, if it is large, in a temporary file.

    The file has no name: nobody else can open or change it, so pickles are safe here, and it disappears with the
    process.

    Args:
        examples: dictionaries of any values; read once, now.
        folder: on the disk for what does not fit into memory; created if necessary, and removed if it stays empty.
    """

    def __init__(self, examples: Iterable[Mapping[str, Any]], folder: str | Path) -> None:
        self._folder = None if Path(folder).exists() else Path(folder)
        Path(folder).mkdir(parents=True, exist_ok=True)
        self._count = 0
        self._starts: list[int] = []
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY, dir=str(folder))  # noqa: SIM115 (closed by `close`)
        try:
            for chunk in chunks(map(dict, examples), CHUNK):
                self._starts.append(self._file.tell())
                pickle.dump(chunk, self._file, protocol=5)
                self._count += len(chunk)
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for start in self._starts:
            self._file.seek(start)  # each time, since several iterations may take turns
            yield from pickle.load(self._file)

    def close(self) -> None:
        """Deletes the copy."""
        self._file.close()
        if self._folder is not None:
            with contextlib.suppress(OSError):  # others have put something there
                self._folder.rmdir()

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
