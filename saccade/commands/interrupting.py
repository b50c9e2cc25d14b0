"""Ctrl-C while a command starts."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def leaving_at_once() -> Iterator[None]:
    """Ends the process on Ctrl-C: an exception inside an import may surface as any other one, with a traceback."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.SIG_IGN or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def leave(number: int, frame: object) -> None:
    """Ends the process on Ctrl-C, whatever is under way."""
    os.write(2, b"Interrupted before anything was written: run the same command again.\n")
    os._exit(130)
