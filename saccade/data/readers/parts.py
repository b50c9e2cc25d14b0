"""Parts of files that are too large to be read at once."""

from __future__ import annotations

from typing import NamedTuple


class FilePart(NamedTuple):
    """Some consecutive rows of a file."""

    line: int
    """The line of the first row (its row in Parquet files), counted from 1."""
    rows: int
    """How many rows."""
    offset: int = 0
    """Where the first row begins, in bytes of the decompressed text; not used for Parquet."""
