"""Word vector files: word2vec, text or binary, and GloVe.

| format | content |
| --- | --- |
| word2vec, text | a line with the number of words and of dimensions; then a line for each: the word and its numbers |
| word2vec, binary | the same first line; then for each word its bytes, a space, and its numbers as float32 |
| GloVe | as word2vec's text, without the first line |
"""

from __future__ import annotations

import gzip
import os
import zlib
from codecs import BOM_UTF8
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saccade.data.errors import DataError, one_line
from saccade.data.readers.files import check_file
from saccade.data.readers.lines import open_binary

MOST_DIM = 16_384
LONGEST_WORD = 4096
"""Bytes."""
DIGITS = 48
"""Bytes of a number in a text file, at most."""

Format = Literal["text", "binary"]


class Head(NamedTuple):
    """What the beginning of a file says."""

    words: int | None
    """The announced number of words, if any; not trusted until all of them have been read."""
    dim: int
    format: Format


class WordVectors(NamedTuple):
    """Words and their vectors, in the order of a file."""

    words: list[str]
    values: NDArray[np.float32]
    """(words, dim)."""


def read_vectors(
    path: str | os.PathLike[str],
    words: Collection[str] | None = None,
    *,
    dim: int | None = None,
    bad_words: Literal["error", "skip"] = "error",
) -> WordVectors:
    """Reads a file of vectors in any of the three formats, which it recognises; it may be gzipped.

    The file may come from anyone: no memory is allocated for what its first line promises, and everything that is kept
    is checked. If a word occurs twice, the first vector counts.

    Args:
        path: the file.
        words: those to keep, so that memory does not grow with the file; None keeps all.
        dim: the required size of the vectors; None accepts any.
        bad_words: whether a word that is not UTF-8 is an "error", or is left out ("skip").
    """
    file = check_file(os.fspath(path))
    wanted = None if words is None else {word.encode("utf-8", "surrogatepass") for word in words}
    found: dict[str, NDArray[np.float32]] = {}
    with open_binary(file) as stream:
        try:
            start = len(BOM_UTF8) if stream.read(len(BOM_UTF8)) == BOM_UTF8 else 0
            stream.seek(start)
            head = read_head(stream, file)
            if dim is not None and head.dim != dim:
                raise DataError(
                    f"{file} has vectors of {head.dim} dimensions, but the model's embeddings have {dim}: set the "
                    f"model's embedding_dim to {head.dim}, or use another file."
                )
            stream.seek(start)
            entries = _text(stream, file, head, wanted) if head.format == "text" else _binary(stream, file, head)
            for place, word, raw in entries:
                if wanted is not None and word not in wanted:
                    if not word.isascii() and bad_words == "error":
                        _decoded(word, file, place)
                    continue
                try:
                    name = _decoded(word, file, place)
                except DataError:
                    if bad_words == "error":
                        raise
                    continue
                if name not in found:
                    found[name] = _numbers(raw, head.dim, file, place, name)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise DataError(f"{file} is not a complete gzip file ({one_line(error)}): copy it again.") from None
    values = np.stack(list(found.values())) if found else np.zeros((0, head.dim), dtype=np.float32)
    return WordVectors(list(found), values)


def write_vectors(
    path: str | os.PathLike[str],
    words: Sequence[str],
    values: ArrayLike,
    *,
    binary: bool = False,
) -> None:
    """Writes vectors in word2vec's format.

    Args:
        path: the file.
        words: without spaces, as the format asks for.
        values: (words, dim).
        binary: whether numbers are written as float32 instead of text.
    """
    spaced = next((word for word in words if not word or any(letter.isspace() for letter in word)), None)
    if spaced is not None:
        raise ValueError(f"The word {spaced!r:.60} is empty or has a space, which the format cannot represent.")
    numbers = np.ascontiguousarray(values, dtype="<f4")
    with open(path, "wb") as file:
        file.write(f"{len(words)} {numbers.shape[1]}\n".encode())
        for word, row in zip(words, numbers, strict=True):
            shown = row.tobytes() if binary else " ".join(map(str, row)).encode()
            file.write(word.encode() + b" " + shown + b"\n")


def read_head(stream: BinaryIO, file: Path) -> Head:
    """The format of a file, by its first lines."""
    longest = LONGEST_WORD + MOST_DIM * DIGITS
    first = stream.readline(longest)
    parts = first.split()
    if len(parts) == 2 and all(part.isdigit() and len(part) < 20 for part in parts):
        count, dim = map(int, parts)
        if not 1 <= dim <= MOST_DIM:
            raise DataError(f"{file}, line 1: {dim:,} dimensions are not from 1 to {MOST_DIM:,}: is it a vector file?")
        second = stream.readline(longest)
        return Head(count, dim, "text" if _is_line(second, dim) else "binary")
    dim = len(parts) - 1
    if not 1 <= dim <= MOST_DIM or not _is_line(first, dim):
        raise DataError(
            f"{file}, line 1: {first[:40]!r} is neither a word and its numbers, nor the numbers of words and of "
            "dimensions: is it a file of word2vec or GloVe?"
        )
    return Head(None, dim, "text")


def _is_line(line: bytes, dim: int) -> bool:
    """Whether this is a word and `dim` numbers."""
    parts = line.split()
    try:
        numbers = [float(part) for part in parts[max(len(parts) - dim, 0) :]]
    except ValueError:
        return False
    return len(parts) > dim == len(numbers)


def _text(
    stream: BinaryIO, file: Path, head: Head, wanted: Collection[bytes] | None
) -> Iterator[tuple[str, bytes, list[bytes] | None]]:
    """The place, the word and the numbers of each line; lines of words that are not wanted are not split."""
    longest = LONGEST_WORD + head.dim * DIGITS
    number, count = 0, 0
    if head.words is not None:
        stream.readline(longest)
        number = 1
    while line := stream.readline(longest + 1):
        number += 1
        place = f"line {number}"
        if len(line) > longest:
            raise DataError(f"{file}, {place}: the line is longer than {longest:,} bytes: is it a vector file?")
        if not line.strip():
            continue
        count += 1
        word = line.split(None, 1)[0]
        if wanted is not None and word not in wanted and word.isascii():
            yield place, word, None
            continue
        parts = line.split()
        if len(parts) <= head.dim:
            raise DataError(f"{file}, {place}: {len(parts) - 1} numbers instead of {head.dim}: is the file truncated?")
        numbers = len(parts) - head.dim
        yield place, b" ".join(parts[:numbers]), parts[numbers:]  # GloVe has words with spaces
    if head.words is not None and count != head.words:
        raise DataError(f"{file} promises {head.words:,} words in its first line but has {count:,}: is it truncated?")


def _binary(stream: BinaryIO, file: Path, head: Head) -> Iterator[tuple[str, bytes, bytes]]:
    """The place, the word and the bytes of each vector."""
    stream.readline(LONGEST_WORD)
    size, held, start = 4 * head.dim, b"", 0
    for number in range(1, (head.words or 0) + 1):
        place = f"word {number}"
        while (space := held.find(b" ", start)) < 0 or len(held) < space + 1 + size:
            if space < 0 and len(held) - start > LONGEST_WORD:
                raise DataError(
                    f"{file}, {place}: the word is longer than {LONGEST_WORD:,} bytes: is it a vector file?"
                )
            more = stream.read(1 << 20)
            if not more:
                raise DataError(
                    f"{file} promises {head.words:,} words in its first line but ends after {number - 1:,}: is it "
                    "truncated?"
                )
            held, start = held[start:] + more, 0
        if space < 0 or space - start > LONGEST_WORD:
            raise DataError(f"{file}, {place}: the word is longer than {LONGEST_WORD:,} bytes: is it a vector file?")
        yield place, held[start:space].lstrip(b"\n"), held[space + 1 : space + 1 + size]
        start = space + 1 + size
    if (held[start:] + stream.read(1)).strip():
        raise DataError(f"{file} promises {head.words:,} words in its first line but has more: is it damaged?")


def _decoded(word: bytes, file: Path, place: str) -> str:
    try:
        return word.decode("utf-8")
    except UnicodeDecodeError:
        raise DataError(
            f"{file}, {place}: the word {word[:40]!r} is not UTF-8. Convert the file, or leave such words out with "
            "bad_words: skip."
        ) from None


def _numbers(raw: list[bytes] | bytes | None, dim: int, file: Path, place: str, word: str) -> NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):
            found = np.frombuffer(raw, "<f4") if isinstance(raw, bytes) else np.array(raw, dtype=np.float64)
            row = found.astype(np.float32)
    except (TypeError, ValueError):
        raise DataError(f"{file}, {place}: the vector of {word!r:.40} is not {dim} numbers.") from None
    if row.shape != (dim,) or not np.isfinite(row).all():
        raise DataError(f"{file}, {place}: the vector of {word!r:.40} has a number that is not finite.")
    return row
