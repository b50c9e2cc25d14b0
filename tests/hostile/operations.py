"""Watches what is written under a folder, and makes one operation fail, or end the process."""

import builtins
import contextlib
import errno
import os
import signal
import time
from pathlib import Path

FAULTS = ("ENOSPC", "EIO", "full", "kill")
"""One failure of a full disk or of the disk; a disk that stays full; the end of the process."""
GROWING = {"open", "write", "flush", "fsync", "mkdir"}
"""What a full disk refuses; names can still be changed and removed."""


class Operations:
    """Records (name, path, target) of every operation under a folder, and fails at the one that is numbered `at`.

    A write that fails leaves half of its data. Calls that name a file by its descriptor are resolved, so this works on
    Linux only.
    """

    def __init__(self, folder, *, at=None, fault=None):
        self.folder, self.at, self.fault = str(Path(folder).resolve()), at, fault
        self.log = []
        self._real = {}

    def __enter__(self):
        for name in ("fsync", "replace", "rename", "mkdir", "unlink", "rmdir"):
            self._real[name] = getattr(os, name)
            setattr(os, name, self._watched(name))
        self._real["open"] = builtins.open
        builtins.open = self._open
        return self

    def __exit__(self, *_):
        builtins.open = self._real.pop("open")
        for name, function in self._real.items():
            setattr(os, name, function)

    def happens(self, name, path, target=None, torn=None):
        """Notes an operation; raises or ends the process if it is its turn."""
        path = self._absolute(path)
        if not (path + "/").startswith(self.folder + "/"):
            return
        number = len(self.log)
        self.log.append((name, path, None if target is None else self._absolute(target)))
        if self.at is None or number < self.at or (number > self.at and not (self.fault == "full" and name in GROWING)):
            return
        if torn is not None:
            torn()
        if self.fault == "kill":
            os._exit(9)
        code = errno.EIO if self.fault == "EIO" else errno.ENOSPC
        raise OSError(code, os.strerror(code), path)

    def _absolute(self, path, folder=None):
        if isinstance(path, int):
            return os.readlink(f"/proc/self/fd/{path}")
        return os.path.join(os.getcwd() if folder is None else os.readlink(f"/proc/self/fd/{folder}"), os.fspath(path))

    def _watched(self, name):
        real = self._real[name]

        def watched(path, *arguments, **options):
            full = self._absolute(path, options.get("dir_fd"))
            self.happens(name, full, arguments[0] if name in ("replace", "rename") else None)
            return real(path, *arguments, **options)

        return watched

    def _open(self, file, mode="r", *arguments, **options):
        if not set(mode) & set("wax+") or isinstance(file, int):
            return self._real["open"](file, mode, *arguments, **options)
        self.happens("open", file)
        return _File(self._real["open"](file, mode, *arguments, **options), self)


class _File:
    """A file whose writes are watched."""

    def __init__(self, file, operations):
        self._file, self._operations = file, operations

    def write(self, data):
        def torn():
            self._file.write(data[: len(data) // 2])
            self._file.flush()

        self._operations.happens("write", self._file.name, torn=torn)
        return self._file.write(data)

    def flush(self):
        self._operations.happens("flush", self._file.name)
        self._file.flush()

    def fileno(self):
        return self._file.fileno()

    def close(self):
        self._file.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()


def strike(work, folder, *, at, fault):
    """Runs `work` with one fault: returns its error, "killed", or None if it went well all the same."""
    if fault != "kill":
        try:
            with Operations(folder, at=at, fault=fault):
                work()
        except OSError as error:
            return error
        return None
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException), Operations(folder, at=at, fault=fault):
            work()
            os._exit(0)
        os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 9), "the killed process ended with an error of its own"
    return "killed" if code == 9 else None


def killed(work, after):
    """Runs `work` in a process that is killed after so many seconds: whether it was, or had ended before."""
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            work()
            os._exit(0)
        os._exit(1)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL), "the process ended with an error of its own"
    return code != 0


def count(work, folder):
    """The operations of undisturbed work."""
    with Operations(folder) as operations:
        work()
    return operations.log
