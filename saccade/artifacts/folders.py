"""Folders of files: written all at once, sealed with the SHA-256 of each file, and verified."""

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from saccade.artifacts.documents import read_json
from saccade.artifacts.files import (
    ArtifactError,
    make_folder,
    not_written,
    open_regular,
    sync_file,
    sync_folder,
    write_file,
    write_synced,
)

CHECKSUMS = "checksums.json"
"""The file of a sealed folder that contains the SHA-256 of the others."""


def write_folder(path: str | os.PathLike[str], files: Mapping[str, bytes | Callable[[], bytes]]) -> Path:
    """Writes and seals a folder of files all at once: it appears under its name complete, or not at all.

    An existing folder is replaced, and keeps its name until the new one is complete.

    Args:
        path: the folder.
        files: the content of each file, or a function that makes it, so that only one is in memory at a time.
    """
    path = Path(path)
    with replacing(path) as partial:
        sums = {}
        for name, content in files.items():
            data = content() if callable(content) else content
            write_synced(partial / name, data)
            sums[name] = hashlib.sha256(data).hexdigest()
        write_synced(partial / CHECKSUMS, _as_json(sums))
        for folder in {(partial / name).parent for name in files} | {partial}:
            sync_folder(folder)
    return path


def fill_folder(path: str | os.PathLike[str], fill: Callable[[Path], object]) -> Path:
    """`write_folder` for files that `fill` writes, one by one, into the folder that it is given."""
    path = Path(path)
    with replacing(path) as partial:
        fill(partial)
        files = sorted(file for file in partial.rglob("*") if not file.is_dir())
        for file in files:
            sync_file(file)
        seal(partial, [file.relative_to(partial).as_posix() for file in files])
        for folder in {file.parent for file in files} | {partial}:
            sync_folder(folder)
    return path


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """An empty folder to write into, which takes the name and place of `path` once everything is written.

    If anything fails, `path` stays as it was.
    """
    path = Path(path)
    partial = path.with_name(f".{path.name}.partial")
    previous = path.with_name(f".{path.name}.previous")
    try:
        remove_folder(partial)
        make_folder(partial)
        yield partial
        if path.exists():
            remove_folder(previous)
            os.rename(path, previous)
        os.rename(partial, path)
        sync_folder(path.parent)
        remove_folder(previous)
    except BaseException as error:
        remove_folder(partial)
        if previous.exists() and not path.exists():
            os.rename(previous, path)
        if isinstance(error, OSError):
            raise not_written(path, error) from error
        raise


def restore_folders(parent: str | os.PathLike[str]) -> None:
    """Tidies up after a crash inside `write_folder`: a replaced folder comes back, a partial one is removed."""
    for previous in Path(parent).glob(".*.previous"):
        path = previous.with_name(previous.name.removeprefix(".").removesuffix(".previous"))
        if path.exists():
            remove_folder(previous)
        else:
            _rename(previous, path)
    for pattern in (".*.partial", ".*.removed"):
        for left in Path(parent).glob(pattern):
            remove_folder(left)


def remove_folder(path: str | os.PathLike[str]) -> None:
    """Removes a folder if it exists, under a hidden name, so that half of it is never mistaken for the whole.

    If the path is a link or a file, only that is removed.
    """
    path = Path(path)
    if path.is_symlink() or not path.is_dir():
        if os.path.lexists(path):
            path.unlink()
    else:
        if not path.name.startswith("."):
            hidden = path.with_name(f".{path.name}.removed")  # .partial may be about to take its place
            remove_folder(hidden)
            _rename(path, hidden)
            path = hidden
        shutil.rmtree(path, ignore_errors=True)


def _rename(path: Path, target: Path) -> None:
    try:
        os.rename(path, target)
    except OSError as error:
        raise ArtifactError(error.errno, f"Could not rename {path} to {target.name}: {error.strerror}") from error


def seal(folder: str | os.PathLike[str], files: Iterable[str]) -> None:
    """Writes the checksums of existing files (paths relative to the folder)."""
    folder = Path(folder)
    write_file(folder / CHECKSUMS, _as_json({name: _sha256(folder / name) for name in files}))


def verify(folder: str | os.PathLike[str], required: Iterable[str]) -> None:
    """Raises `ArtifactError` unless every sealed file is present and unchanged, and every required one is sealed.

    Args:
        folder: what `write_folder` or `seal` sealed.
        required: the files that the caller is going to read (paths relative to the folder, with forward slashes).
    """
    folder = Path(folder)
    sums = _read_sums(folder)
    for name in required:
        if name not in sums:
            raise ArtifactError(f"{folder / CHECKSUMS} is damaged: it has no entry for {name}.")
    for name, expected in sums.items():
        try:
            found = _sha256(folder / name)
        except (FileNotFoundError, NotADirectoryError):
            raise ArtifactError(f"{folder} is incomplete: {name} is missing.") from None
        if found != expected:
            raise ArtifactError(f"{folder / name} is damaged: its SHA-256 differs from the one in {CHECKSUMS}.")


def unsealed(folder: str | os.PathLike[str]) -> list[str]:
    """The files of a sealed folder that were not sealed with it, and so belong to someone else."""
    folder = Path(folder)
    sealed = {*_read_sums(folder), CHECKSUMS}
    files = (file.relative_to(folder).as_posix() for file in folder.rglob("*") if not file.is_dir())
    return sorted(file for file in files if file not in sealed)


def _read_sums(folder: Path) -> dict[str, str]:
    where = folder / CHECKSUMS
    try:
        sums = read_json(where)
    except FileNotFoundError:
        raise ArtifactError(f"{folder} is incomplete: {CHECKSUMS} is missing.") from None
    if not isinstance(sums, dict):
        raise ArtifactError(f"{where} is damaged: it is not an object of file names and their SHA-256.")
    for name, value in sums.items():
        if not _is_inside(name):
            raise ArtifactError(f"{where} is damaged: {name[:80]!r} is not a file inside the folder.")
        if not isinstance(value, str) or not re.fullmatch(r"[0-9a-f]{64}", value):
            raise ArtifactError(f"{where} is damaged: the entry for {name} is not a SHA-256.")
    return sums


def _is_inside(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return bool(parts) and not ({"..", "/", "//"} & set(parts)) and not any(c in name for c in "\\:\0")


def _sha256(path: Path) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _as_json(sums: dict[str, str]) -> bytes:
    return (json.dumps(sums, indent=2) + "\n").encode()
