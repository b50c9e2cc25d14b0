"""Files that are values themselves: recordings, pictures."""

from __future__ import annotations

import io
import os
import stat
from typing import BinaryIO

Source = str | bytes
"""The path of a file, or its contents."""


class MediaError(ValueError):
    """A file that cannot be used: what is wrong with it, and what to do."""

    def __init__(self, problem: str, fix: str) -> None:
        super().__init__(f"{problem}. {fix}")
        self.problem, self.fix = problem, fix


def opened(source: Source, error: type[MediaError] = MediaError) -> BinaryIO:
    """The file, open for reading; raises `error` if it cannot be opened or is not an ordinary file."""
    if isinstance(source, bytes):
        return io.BytesIO(source)
    try:
        descriptor = os.open(source, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise error("it does not exist", "Check the path; relative ones start from the table's folder.") from None
    except (OSError, ValueError) as failure:  # a NUL in the path is a ValueError
        reason = getattr(failure, "strerror", None) or failure
        raise error(f"it cannot be opened ({reason})", "Check the path and its permissions.") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # a pipe could block for ever
        os.close(descriptor)
        raise error("it is not an ordinary file", "Give the path of a file.")
    return open(descriptor, "rb")
