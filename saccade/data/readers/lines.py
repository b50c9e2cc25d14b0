"""Lines of text files, plain or gzipped, one at a time."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from saccade.data.errors import DataError


def suffix(path: str | Path) -> str:
    """The suffix that tells the format: that of `pairs.tsv.gz` is `.tsv`."""
    path = Path(path)
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()


def open_binary(path: Path) -> BinaryIO:
    """The file, unpacked if it is gzipped."""
    try:
        return cast(BinaryIO, gzip.open(path, "rb") if path.suffix.lower() == ".gz" else open(path, "rb"))
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no file {path}.") from None


def read_lines(path: Path) -> Iterator[str]:
    """The lines without their ends; bytes that are not UTF-8 become lone surrogates, which `checked` refuses.

    Only a newline ends a line: characters such as U+2028 or U+0085 stand inside sentences of web text.
    """
    for line in raw_lines(path):
        yield line.rstrip("\n").removesuffix("\r")


def raw_lines(path: Path) -> Iterator[str]:
    """The lines with their ends, without a byte order mark."""
    try:
        with open_binary(path) as file:
            for number, line in enumerate(file):
                text = line.decode("utf-8", "surrogateescape")
                yield text.removeprefix("\ufeff") if number == 0 else text
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path} is not a whole gzip file ({error}): fetch or compress it again.") from None
