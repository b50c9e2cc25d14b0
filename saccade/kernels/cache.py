"""The user's cache: a folder that no other user can write to, and the intact compiled kernels in it.

Loading a library runs its code, so one is loaded only if no other user can have put it there, and only if its content
has the SHA-256 in its name: the system's loader does not survive every truncated file.
"""

import hashlib
import os
import stat
import warnings
from pathlib import Path

LENGTH = 20
"""Hexadecimal digits of a SHA-256 in a file's name."""
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def private_cache() -> Path | None:
    """The user's cache folder, created if needed; None if there is none, or if other users could write to it."""
    given = os.environ.get("XDG_CACHE_HOME")
    try:
        parent = Path(given) if given else Path.home() / ".cache"
    except RuntimeError:  # no home
        return None
    folder = parent / "saccade"
    try:
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = parent.resolve() / "saccade"
        if not os.path.lexists(folder):
            folder.mkdir(mode=0o700, exist_ok=True)
        problem = _problem(folder)
    except OSError:  # a read-only home, or a file where the folder should be
        return None
    if problem:
        warnings.warn(
            f"{folder} is not used as a cache, since {problem}; each process rebuilds what it would keep, such as C "
            "kernels. Delete it, or make it private (chmod 700).",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    return folder


def find(folder: Path, fingerprint: str) -> Path | None:
    """The intact library in a private folder that was compiled for this fingerprint, if there is one."""
    for path in sorted(folder.glob(f"kernels-{fingerprint}-*.so")):
        about = path.lstat()
        ours = stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid() and not about.st_mode & OTHERS_WRITE
        if ours and path.name == _name(fingerprint, path.read_bytes()):
            return path
    return None


def keep(folder: Path, fingerprint: str, made: Path) -> Path:
    """Moves a library from a folder on the same disk into the cache in one step."""
    kept = folder / _name(fingerprint, made.read_bytes())
    made.chmod(0o700)
    os.replace(made, kept)  # atomic, so that another process never sees a partial file
    return kept


def _name(fingerprint: str, content: bytes) -> str:
    return f"kernels-{fingerprint}-{hashlib.sha256(content).hexdigest()[:LENGTH]}.so"


def _problem(folder: Path) -> str:
    """Why another user could write to a folder, or replace it; empty if none could."""
    about = folder.lstat()
    if not stat.S_ISDIR(about.st_mode):
        return "it is not a folder but a link or a file"
    if about.st_uid != os.geteuid():
        return "it belongs to another user"
    if about.st_mode & OTHERS_WRITE:
        return "other users can write to it"
    for above in folder.parents:
        about = above.stat()
        if about.st_uid not in (0, os.geteuid()):
            return f"{above} belongs to another user"
        if about.st_mode & OTHERS_WRITE and not about.st_mode & stat.S_ISVTX:
            return f"other users can write to {above}"
    return ""
