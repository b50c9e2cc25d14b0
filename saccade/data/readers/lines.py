"""Lines of text files, plain or gzipped, one at a time and of bounded length."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

from saccade.data.errors import BadRow, DataError, conversion, one_line
from saccade.data.readers.parts import FilePart

LONGEST = 16 << 20
"""The maximum length of a line (or CSV row) in bytes: a few kilobytes of gzip can contain a line of gigabytes."""

PATIENCE = 16
"""How many times `LONGEST` is read in search of the end of a longer line, before the whole file is rejected."""


def suffix(path: str | Path) -> str:
    """The suffix that names the format: `.tsv` for `pairs.tsv.gz`."""
    path = Path(path)
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()


def open_binary(path: Path) -> BinaryIO:
    """The file, decompressed if it is gzipped."""
    try:
        return cast(BinaryIO, gzip.open(path, "rb") if path.suffix.lower() == ".gz" else open(path, "rb"))
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no file {path}.") from None


def read_lines(path: Path) -> Iterator[str]:
    """The lines without their ends, and without their numbers; raises `BadRow` at a line that is too long."""
    for _, line in numbered_lines(path):
        if isinstance(line, BadRow):
            raise line
        yield line


def numbered_lines(path: Path, part: FilePart | None = None) -> Iterator[tuple[int, str | BadRow]]:
    """The numbers and lines, without line ends, from the beginning or from that of a part.

    Only a newline ends a line: characters such as U+2028 or U+0085 occur inside sentences of web text.
    """
    for number, line in raw_lines(path, part):
        yield number, line if isinstance(line, BadRow) else line.rstrip("\n").removesuffix("\r")


def paragraphs(path: Path) -> Iterator[tuple[int, str | BadRow]]:
    """The lines between empty ones, joined by newlines, with the number of the first; each of bounded length."""
    first, lines, size = 0, list[str](), 0
    for number, line in numbered_lines(path):
        if isinstance(line, BadRow):
            yield number, line
            continue
        if line.strip():
            first = first or number
            lines.append(line)
            size += len(line)
        if lines and (not line.strip() or size > LONGEST):
            yield first, "\n".join(lines)
            first, lines, size = 0, [], 0
    if lines:
        yield first, "\n".join(lines)


def raw_lines(path: Path, part: FilePart | None = None) -> Iterator[tuple[int, str | BadRow]]:
    """The numbers and lines, with line ends and without a byte order mark.

    Bytes that are not UTF-8 become lone surrogates, which `saccade.data.cell.text_of` rejects.
    """
    number = 0 if part is None else part.line - 1
    try:
        with open_binary(path) as stream:
            if part is not None:
                stream.seek(part.offset)
            while line := stream.readline(LONGEST + 1):
                number += 1
                if len(line) > LONGEST:
                    yield number, too_long(path, number)
                    skip_line(stream, line, path, number)
                    continue
                if number == 1:
                    line = without_mark(line, path)
                yield number, line.decode("utf-8", "surrogateescape")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{path} is not a complete gzip file ({one_line(error)}, after line {number}): copy or compress it again."
        ) from None


def too_long(path: Path, line: int) -> BadRow:
    """The error for a line beyond the limit."""
    size = f"{LONGEST >> 20} MiB" if LONGEST >= 1 << 20 else f"{LONGEST} bytes"
    return BadRow(str(path), line, f"the line is longer than {size}", "Check that this is a text file; break it up.")


def skip_line(stream: BinaryIO, line: bytes, path: Path, number: int) -> None:
    """Skips to the end of a line that is too long."""
    for _ in range(PATIENCE):
        if not line or line.endswith(b"\n"):
            return
        line = stream.readline(LONGEST)
    raise DataError(f"{path}, line {number}: found no line break in {PATIENCE * LONGEST:,} bytes. Is this text?")


def without_mark(line: bytes, path: Path) -> bytes:
    """The first line without UTF-8's byte order mark; that of UTF-16 is an error."""
    if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(f"{path} is UTF-16. Convert it: {conversion(str(path), 'UTF-16')}")
    return line.removeprefix(codecs.BOM_UTF8)


def offsets(path: Path, lines: Sequence[int]) -> list[int]:
    """Where some lines begin, in bytes; they are in order, and counted from 1."""
    found, number, place = list[int](), 1, 0
    with open_binary(path) as stream:
        for line in lines:
            while number < line and (read := stream.readline(1 << 20)):
                place += len(read)
                number += read.endswith(b"\n")
            found.append(place)
    return found
