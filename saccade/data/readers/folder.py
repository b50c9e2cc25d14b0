"""Folders of files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from saccade.data.errors import BadRow, DataError
from saccade.data.readers.base import Reader, readers
from saccade.data.readers.columns import Column, Columns, Record, listed
from saccade.data.readers.hub import PREFIX, is_saved
from saccade.data.readers.lines import suffix
from saccade.data.readers.tu import tu_name

PATH = "path"
NAMES = (PATH, "name", "stem")
LABEL = "label"
TABLES = (".csv", ".jsonl", ".parquet", ".tsv")
"""Files that are read row by row themselves."""


@readers.register("folder")
class FolderOfFiles(Reader):
    """A folder whose files are the rows, sorted by name, those of sub-folders included; hidden files are left out.

    Columns: `path` (absolute), `name`, `stem` (the name without its suffix) and, for files in sub-folders, `label`: the
    name of their folder. One role without such a column takes the path.
    """

    def __init__(self, source: Any, columns: Columns, *, header: bool | None = None) -> None:
        super().__init__(source, columns, header=header)
        self.folder = Path(self.name).absolute()
        if is_saved(self.folder):
            raise DataError(f"{self.name} is a dataset saved by the datasets library: write {PREFIX + self.name!r}.")

    @classmethod
    def takes(cls, source: Any) -> bool:
        return isinstance(source, str) and os.path.isdir(source) and tu_name(source) is None

    def rows(self) -> Iterator[tuple[int, Record | BadRow]]:
        line = 0
        for path in self.files():
            line += 1
            if not path.is_file():
                yield line, BadRow(self.name, line, f"{path.name!r} is not a file", "Move it elsewhere.")
                continue
            row = {"path": str(path), "name": path.name, "stem": path.stem}
            yield line, row if path.parent == self.folder else {**row, LABEL: path.parent.name}
        if not line:
            raise DataError(
                f"The folder {self.name} contains no files: name one with a file for each example, or a table."
            )

    def files(self) -> Iterator[Path]:
        """Everything in the folder that is neither hidden nor a folder."""

        def refuse(error: OSError) -> None:
            raise error

        for root, folders, names in os.walk(self.folder, onerror=refuse):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                if not name.startswith("."):
                    yield Path(root, name)

    def choose(self, first: Record) -> dict[str, Column]:
        known, columns = (*NAMES, LABEL), self.columns
        given = columns.given or {}
        if not set(columns.mentioned()) & {*known}:  # columns of the training file, say, when predicting from a folder
            given = {role: role for role in columns.roles if role in known or role in columns.required}
        others = [role for role, column in given.items() if column not in known and role in columns.required]
        if others and (len(others) > 1 or given[others[0]] != others[0]):
            tables = [path.relative_to(self.folder).as_posix() for path in self.files() if suffix(path) in TABLES]
            if tables:
                raise DataError(f"{self.name} is a folder that contains tables ({listed(tables)}): name one of them.")
            raise DataError(
                f"{self.name} is a folder, in which each file is a row with the columns {', '.join(known)}: say which "
                f"is the {' and which the '.join(others)}, as {columns.example(known)}."
            )
        chosen: dict[str, Column] = {role: PATH if role in others else column for role, column in given.items()}
        if LABEL in [chosen[role] for role in columns.required if role in chosen] and LABEL not in first:
            raise DataError(
                f"{self.name} has files outside its sub-folders, which have no label: the label of a file is the name "
                "of the sub-folder that contains it."
            )
        return chosen

    def unread(self) -> list[str]:
        return []  # nobody wrote its columns

    def stamp(self) -> str:
        found = [(path, path.stat()) for path in self.files() if path.exists()]
        return "\n".join(f"{path} {stat.st_size} {stat.st_mtime_ns}" for path, stat in found)
