"""Graceful handling of SIGINT and SIGTERM."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any


class Interrupted(SystemExit):
    """Training was asked to stop, and has saved a checkpoint; as an exit code: 130."""

    def __init__(self, step: int) -> None:
        super().__init__(130)
        self.step = step


class Aborted(BaseException):
    """Raised inside `Interruption.abortable` when a signal comes."""


class Interruption:
    """Notes SIGINT and SIGTERM, so that the current step is finished; a second signal takes effect at once.

    Under torchrun, which passes on what the terminal sent to all processes anyway, later ones are ignored.
    """

    def __init__(self) -> None:
        self.requested = False
        self._abortable = False
        self._alone = int(os.environ.get("WORLD_SIZE", "1")) == 1
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> "Interruption":
        if threading.current_thread() is threading.main_thread():  # no other thread may set handlers
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous.clear()

    @contextlib.contextmanager
    def abortable(self) -> Iterator[None]:
        """A context for work that changes nothing and may be aborted at any point: a signal raises `Aborted`.

        Not with several processes, where the others would wait for this one.
        """
        self._abortable = self._alone
        try:
            if self.requested and self._abortable:
                raise Aborted
            yield
        finally:
            self._abortable = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        again, self.requested = self.requested, True
        if self._abortable:
            self._abortable = False
            raise Aborted
        if again and self._alone:
            raise KeyboardInterrupt
