"""A lock on a run folder, so that two trainings never write to the same one."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import shlex
import socket
import stat
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from saccade.artifacts import ArtifactError, JsonObject, parse_json

FILE = ".lock"
UNSUPPORTED = {errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL}
"""How file systems say that they have no locks."""
_held: set[int] = set()
"""Descriptors of the locks of this process. It belongs to the module because `os.register_at_fork` takes a function for
the rest of the process, and not one that a lock could take back when it ends."""


class FolderInUseError(ArtifactError):
    """Another process holds the lock."""


class RunLock:
    """Locks a run folder for this process: `with RunLock(folder): ...`.

    The lock is the kernel's (`flock` on `.lock`). It disappears with the process, however that ends, so there are no
    stale locks. The file tells other processes who holds it. Where the system has no such locks, the file itself is the
    lock, and is taken over if its process is no longer running. Of the processes that torchrun starts, only the first
    locks.

    Args:
        folder: created if it does not exist.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.path = self.folder / FILE
        self._descriptor: int | None = None
        self._created = False
        self._owner = 0

    def __enter__(self) -> RunLock:
        if os.environ.get("RANK", "0") == "0":
            self._created = not self.folder.exists()
            self.folder.mkdir(parents=True, exist_ok=True)
            while self._descriptor is None:
                self._descriptor = self._try()
            _held.add(self._descriptor)
            self._owner = os.getpid()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is None or self._owner != os.getpid():  # a forked child leaves it to its parent
            return
        with contextlib.suppress(OSError):  # the folder may be gone
            self.path.unlink()  # while the lock is held, so that nobody else's file is removed
        _held.discard(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = None
        if self._created:
            with contextlib.suppress(OSError):  # it is not empty: the usual case
                self.folder.rmdir()

    def _try(self) -> int | None:
        """A descriptor that holds the lock, or None if the file was removed meanwhile and another try is due."""
        descriptor = self._open(os.O_CREAT)
        try:
            if not _lock(descriptor):
                return self._try_file(descriptor)
            try:
                same = os.path.samestat(os.fstat(descriptor), os.stat(self.path))
            except FileNotFoundError:
                same = False
            if not same:  # the holder before us removed it between our opening and our locking it
                os.close(descriptor)
                return None
            _sign(descriptor)
            return descriptor
        except BlockingIOError:
            error = self._in_use(_read(descriptor))
            os.close(descriptor)
            raise error from None

    def _try_file(self, descriptor: int) -> int | None:
        """The same without locks in the kernel: the first running process that signs the file holds it."""
        signed = _read(descriptor)
        os.close(descriptor)
        if signed and not _is_stale(signed):
            raise self._in_use(signed)
        aside = self.path.with_name(f"{FILE}.{os.getpid()}")
        with contextlib.suppress(FileNotFoundError):
            os.rename(self.path, aside)
            changed = aside.read_bytes() != signed  # somebody else was faster
            if changed:
                os.rename(aside, self.path)
                return None
            aside.unlink()
        try:
            descriptor = self._open(os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return None
        _sign(descriptor)
        return descriptor

    def _open(self, flags: int) -> int:
        extra = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
        try:
            descriptor = os.open(self.path, os.O_RDWR | flags | extra, 0o644)
        except FileExistsError:
            raise
        except OSError as error:
            raise ArtifactError(error.errno, f"Could not lock {self.folder}: {error.strerror}") from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise ArtifactError(f"{self.path} is not an ordinary file: delete it.")
        return descriptor

    def _in_use(self, signed: bytes) -> FolderInUseError:
        holder = _describe(signed, self.path)
        return FolderInUseError(f"{self.folder} is in use by {holder}: wait for it, stop it, or choose another folder.")


def _lock(descriptor: int) -> bool:
    """Locks a file; False where the system cannot, `BlockingIOError` if another process holds it."""
    try:
        import fcntl
    except ImportError:  # Windows
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as error:
        if error.errno in UNSUPPORTED:
            return False
        raise
    return True


def _sign(descriptor: int) -> None:
    program = Path(sys.argv[0]).name if sys.argv else ""
    ours = program in ("saccade", "__main__.py")
    holder = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": int(time.time()),
        "command": shlex.join(["saccade", *sys.argv[1:]]) if ours else program or "python",
    }
    os.ftruncate(descriptor, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, json.dumps(holder).encode())


def _read(descriptor: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    return os.read(descriptor, 65536)


def _holder(signed: bytes, path: Path) -> dict[str, Any] | None:
    try:
        holder = JsonObject(parse_json(signed, str(path)), str(path))
        holder.take("pid", int, least=1, most=2**31 - 1)
        holder.take("since", int, least=0, most=2**33)
        for key in ("host", "command"):
            holder.take(key, str)
    except ArtifactError:  # not signed yet, or not by us
        return None
    return holder.values


def _describe(signed: bytes, path: Path) -> str:
    holder = _holder(signed, path)
    if holder is None:
        return "another process"
    began = time.localtime(holder["since"])
    since = time.strftime("%H:%M" if began[:3] == time.localtime()[:3] else "%Y-%m-%d %H:%M", began)
    host = "" if holder["host"] == socket.gethostname() else f" on {_plain(holder['host'])}"
    return f"process {holder['pid']}{host} ({_plain(holder['command'])}, since {since})"


def _plain(text: str) -> str:
    shown = "".join(c if c.isprintable() else "?" for c in text)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


def _is_stale(signed: bytes) -> bool:
    """Whether the process that signed is known to have ended; this cannot be known for other machines."""
    holder = _holder(signed, Path(FILE))
    return holder is not None and holder["host"] == socket.gethostname() and not _is_running(holder["pid"])


def _is_running(pid: int) -> bool:
    if os.name == "nt":  # os.kill(pid, 0) would send it a signal there
        kernel = getattr(ctypes, "windll").kernel32  # noqa: B009 (it exists on Windows only)
        handle = kernel.OpenProcess(0x1000, False, pid)
        if handle:
            kernel.CloseHandle(handle)
        return bool(handle)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's
        return True
    return True


def _close_in_child() -> None:
    """A forked worker must not keep the lock when its parent ends."""
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)
