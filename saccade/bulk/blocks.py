"""Blocks: the consecutive rows of an input file that become one output file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from saccade.data.errors import DataError
from saccade.data.readers import FilePart, Reader
from saccade.data.readers.files import expanded
from saccade.data.readers.lines import suffix

FORMATS = (".parquet", ".jsonl", ".csv", ".tsv")


class Block(NamedTuple):
    """Some rows of a file, and the number of the output file that they become."""

    number: int
    file: str
    part: FilePart

    def output(self, folder: Path) -> Path:
        """Its output file."""
        return folder / f"part-{self.number:06d}{format_of(self.file)}"


def format_of(file: str) -> str:
    """The suffix of the output for an input file."""
    return ".jsonl" if suffix(file) == ".ndjson" else suffix(file)


def check_files(files: Sequence[str]) -> list[str]:
    """Returns absolute paths; raises unless they are different tables of one format."""
    found = [os.path.abspath(file) for name in files for file in expanded(name)]
    for file in found:
        if format_of(file) not in FORMATS:
            raise DataError(f"--data takes {', '.join(FORMATS)} (text may be gzipped), got {file}.")
        if found.count(file) > 1:
            raise DataError(f"--data names {file} twice: its rows would be answered twice.")
    formats = sorted({format_of(file) for file in found})
    if len(formats) > 1:
        raise DataError(f"--data takes files of one format, so that the output has one; got {' and '.join(formats)}.")
    return found


def blocks_of(readers: Sequence[Reader], rows: int) -> Iterator[Block]:
    """The blocks of all files, in order, each with this many rows, or fewer at the end of a file."""
    number = 0
    for reader in readers:
        for part in reader.parts(rows):
            yield Block(number, reader.name, part)
            number += 1
