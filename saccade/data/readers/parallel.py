"""Plain text files, line by line."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from saccade.data.errors import BadRow, DataError
from saccade.data.readers.base import Reader, readers
from saccade.data.readers.columns import Column, Columns, Record, by_position, parts, positions, unknown
from saccade.data.readers.files import check_file, stamp
from saccade.data.readers.lines import numbered_lines, paragraphs, suffix

OTHER = (
    *(".json", ".zip", ".bz2", ".xz", ".zst", ".7z", ".tar", ".tgz", ".arrow", ".feather", ".xlsx", ".xls", ".ods"),
    *(".npy", ".npz", ".pkl", ".pickle", ".pt", ".h5", ".sqlite", ".db", ".docx", ".pdf"),
)
"""Common formats that are not lines of text."""

INSTEAD = {
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "Save the table as .csv."),
    **dict.fromkeys((".zip", ".bz2", ".xz", ".zst", ".7z", ".tar", ".tgz"), "Unpack it; of packed files, .gz is read."),
}
"""What to do about some of them."""


@readers.register("text")
class ParallelText(Reader):
    """Text files whose n-th lines make up the n-th row: `train.en,train.de`.

    The files are the columns: numbered in the order given, and named by their suffixes (`train.de.gz` is "de").
    """

    fallback = True

    def __init__(self, source: Any, columns: Columns, *, header: bool | None = None) -> None:
        self.paths = [check_file(name) for name in split(source)]
        super().__init__(",".join(map(str, self.paths)), columns, header=header)
        self.folder = self.paths[0].parent
        for path in self.paths:
            if suffix(path) in OTHER:
                raise DataError(
                    f"{path}: there is no reader for {suffix(path)} files.{_instead(path)} Readers: "
                    f"{', '.join(readers.names())}; a table ends in .tsv, .csv, .jsonl or .parquet."
                )

    @classmethod
    def takes(cls, source: Any) -> bool:
        if isinstance(source, str):
            return all(os.path.exists(name) and not os.path.isdir(name) for name in split(source))
        return isinstance(source, tuple) and all(isinstance(name, str) for name in source)

    def rows(self) -> Iterator[tuple[int, Record | BadRow]]:
        needed, count = self.columns.required, len(self.paths)
        if count == 1 and len(needed) > 1:
            raise DataError(
                f"{self.name} is one text file, but {' and '.join(needed)} need one each: give {len(needed)}, "
                "separated by commas, as train.src,train.tgt; a table ends in .tsv, .csv, .jsonl or .parquet."
            )
        if self.columns.given is None and count not in (len(needed), len(self.columns.roles)):
            raise DataError(f"{self.name} are {count} text files for {len(needed)} columns ({', '.join(needed)}).")
        self.names = [suffix(path)[1:] for path in self.paths]
        if self.columns.paragraphs and count == 1:
            for line, text in paragraphs(self.paths[0]):
                yield line, text if isinstance(text, BadRow) else [text]
            return
        for line, found in enumerate(zip_longest(*map(numbered_lines, self.paths)), start=1):
            if None in found:
                raise different_lengths(self.paths)
            texts = [text for _, text in found]
            yield line, next((text for text in texts if isinstance(text, BadRow)), texts)

    @classmethod
    def absolute(cls, source: str) -> str:
        names = split(source)
        if len(names) > 1 and "," in os.getcwd():  # the parts could not be told apart any more
            return source
        return ",".join(map(os.path.abspath, names))

    def choose(self, first: Record) -> dict[str, Column]:
        columns, names = self.columns, self.names or ()
        alone = len(self.paths) == len(columns.required) == 1  # whatever its suffix, it can only be that column
        if columns.given is None or (alone and not set(columns.mentioned()) <= {*names, 0}):
            return by_position(columns, len(self.paths))
        wanted = [column for role in columns.required for column in parts(columns.given[role])]
        lost = [column for column in wanted if isinstance(column, str) and column not in names]
        if lost:
            raise unknown(lost, names, self.name)
        return positions(columns, names, self.name)

    def where(self, role: str) -> str:
        column = self.chosen[role]
        return str(self.paths[column]) if isinstance(column, int) else self.name

    def stamp(self) -> str:
        return "\n".join(map(stamp, self.paths))


def split(source: str | Sequence[str]) -> list[str]:
    """The names of the files; a comma separates two unless it is part of a name."""
    if not isinstance(source, str):
        return list(source)
    return [source] if os.path.exists(source) else [part.strip() for part in source.split(",")]


def different_lengths(paths: Sequence[Path]) -> DataError:
    """The error that counts the lines of each file."""
    counts = [f"{path} has {sum(1 for _ in numbered_lines(path))} lines" for path in paths]
    return DataError(f"Parallel files must have the same number of lines: {', '.join(counts)}.")


def _instead(path: Path) -> str:
    """What to do about a file that cannot be read."""
    if suffix(path) == ".json":
        lines = "import json, sys; [print(json.dumps(row)) for row in json.load(sys.stdin)]"
        return f" Write a list one object a line: python -c '{lines}' < {path.name} > {path.stem}.jsonl."
    found = INSTEAD.get(suffix(path))
    return f" {found}" if found else ""
