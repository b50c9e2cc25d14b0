"""Single files: replaced all at once, and opened only if they are ordinary files."""

import contextlib
import io
import itertools
import os
import stat
from pathlib import Path


class ArtifactError(OSError):
    """A file or folder could not be written, or does not contain what it should."""


def write_file(path: str | os.PathLike[str], content: bytes | str) -> Path:
    """Replaces a file in one step: a crash leaves the old content or the new, never a mixture."""
    path = Path(path)
    partial = path.with_name(f".{path.name}.partial")
    try:
        write_synced(partial, content.encode() if isinstance(content, str) else content)
        os.replace(partial, path)
        sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise not_written(path, error) from error
    return path


def write_synced(path: Path, data: bytes) -> None:
    """Creates a file, with its folder, and waits until its content is on the disk."""
    make_folder(path.parent)
    path.unlink(missing_ok=True)
    with open(path, "xb") as file:  # "x" follows no symbolic link that someone left under this name
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_file(path: Path) -> None:
    """Waits until the content of a file is on the disk."""
    with open(path, "r+b") as file:
        os.fsync(file.fileno())


def make_folder(path: Path) -> None:
    """Creates a folder and those above it, and waits until their names are on the disk."""
    missing = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def sync_folder(path: Path) -> None:
    """Waits until the names in a folder are on the disk, where the system allows it."""
    if os.name == "nt":  # folders cannot be opened there
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_regular(path: str | os.PathLike[str]) -> io.BufferedReader:
    """Opens an ordinary file for reading; rejects folders, pipes and devices, which could block or never end."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ArtifactError(f"{path} is not an ordinary file: replace it with a copy of the original.")
    return open(descriptor, "rb")


def keep_damaged(path: Path) -> Path:
    """Copies a damaged file to `name.damaged`, or the first free number of it, before it is replaced."""
    names = (f"{path.name}.damaged{f'.{number}' if number > 1 else ''}" for number in itertools.count(1))
    aside = next(path.with_name(name) for name in names if not os.path.lexists(path.with_name(name)))
    with open_regular(path) as file:
        return write_file(aside, file.read())


def not_written(path: Path, error: OSError) -> ArtifactError:
    """The error of a failed write: its reason, and the promise that nothing is half written."""
    if isinstance(error, ArtifactError):
        return error
    return ArtifactError(
        error.errno, f"{error.strerror or error}; writing {path} failed, it is as it was before or complete"
    )
