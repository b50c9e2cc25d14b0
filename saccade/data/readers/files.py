"""Checks of the files that a user names."""

from __future__ import annotations

import difflib
import glob
import os
import stat
from pathlib import Path

from saccade.data.errors import DataError, one_line

SPECIAL = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def check_file(name: str) -> Path:
    """The path of a non-empty file; the error for a missing one suggests the closest name."""
    path = Path(name)
    if not name:
        raise DataError("A file name is empty.")
    if not os.path.exists(path):
        raise missing(path)
    found = path.stat()
    kind = SPECIAL.get(stat.S_IFMT(found.st_mode))
    if kind is not None:
        raise DataError(
            f"{name} is {kind}, not a file: save the data to a file first, since it is read more than once."
        )
    if path.is_dir():
        raise DataError(f"{name} is a folder, where a file is needed.")
    if found.st_size == 0:
        raise DataError(f"{name} is empty: write the data to it, or name another file.")
    return path


def expanded(name: str) -> list[str]:
    """The files that a pattern such as `shards/*.parquet` stands for, in order; any other name stands for itself."""
    if os.path.exists(name) or not glob.has_magic(name):
        return [name]
    found = sorted(glob.glob(name, recursive=True))
    if not found:
        raise FileNotFoundError(f"There is no file like {name}.")
    return found


def missing(path: Path) -> FileNotFoundError:
    """The error for a file that does not exist."""
    hint = ""
    if not os.path.isdir(path.parent):
        hint = f" There is no folder {path.parent}."
    elif close := similar_file(path):
        hint = f" Did you mean {path.parent / close}?"
    return FileNotFoundError(one_line(f"There is no file {path}.{hint}".replace("\0", "\\0")))


def similar_file(path: Path) -> str | None:
    """The name of a file in the same folder with a similar stem; suffixes do not count, since many files share them."""
    siblings = [other.name for other in path.parent.iterdir()] if os.path.isdir(path.parent) else []
    stem = path.name.partition(".")[0]
    near = [name for name in siblings if difflib.get_close_matches(stem, [name.partition(".")[0]], cutoff=0.75)]
    return next(iter(difflib.get_close_matches(path.name, near, n=1)), None)


def stamp(path: str | Path) -> str:
    """Changes if a file, or any file in a folder, changes: names, sizes and modification times."""
    if os.path.isdir(path):
        inside = sorted(os.path.join(root, name) for root, _, names in os.walk(path) for name in names)
        return "\n".join(stamp(name) for name in inside)
    if not os.path.isfile(path):
        return str(path)
    found = os.stat(path)
    return f"{path} {found.st_size} {found.st_mtime_ns}"
