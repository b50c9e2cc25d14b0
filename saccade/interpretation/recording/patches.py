"""The functions that are replaced while something is recorded, and restored afterwards.

PyTorch's functions belong to the whole process, so the replacements do too. Each of them first checks whether this
thread records; other threads are not affected.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from saccade.attention import watchers
from saccade.interpretation.recording.calls import Calls, Recording
from saccade.interpretation.recording.references import References, Replacement
from saccade.kernels import steps
from saccade.kernels.private_torch import COMPILER, FLEX_OPERATOR, restore_stance, run_uncompiled


class Patches:
    """Replaces functions while at least one recording is active."""

    def __init__(self) -> None:
        self.calls = Calls()
        self._lock = threading.RLock()
        self._active = 0
        self._replaced: list[Replacement] = []
        self._stances: list[Any] = []
        # Callers compare these functions by identity.
        self._references = References(self.calls.wraps(), at_home={"has_torch_function", FLEX_OPERATOR[1]})

    def start(self, recording: Recording) -> None:
        """Starts to notify a recording of this thread's attention; nothing runs compiled in the meantime."""
        with self._lock:
            if not self._active:
                try:
                    self._install(self._references.replacements())
                except BaseException:
                    self._uninstall()
                    raise
            self._active += 1
        self.calls.start(recording)

    def stop(self, recording: Recording) -> None:
        """Ends a recording; the last one restores every function."""
        try:
            self.calls.stop(recording)
        finally:
            with self._lock:
                self._active -= 1
                self._uninstall()

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """A context in which nothing is replaced, for compilers that trace the code they run."""
        with self._lock:  # recordings of other threads wait
            replaced = list(self._replaced)
            active, self._active = self._active, 0
            self._uninstall()
            try:
                with self.calls.muted():
                    yield
            finally:
                self._active = active
                if active:
                    self._install(replaced)

    def _install(self, replacements: list[Replacement]) -> None:
        for each in replacements:
            namespace, name, original, replacement = each
            if namespace.get(name) is original:
                namespace[name] = replacement
                self._replaced.append(each)
        watchers.append(self.calls)
        if COMPILER in sys.modules or FLEX_OPERATOR[0] in sys.modules:
            self._stances.append(run_uncompiled())

    def _uninstall(self) -> None:
        if self._active:
            return
        while self._replaced:
            namespace, name, original, replacement = self._replaced.pop()
            if namespace.get(name) is replacement:  # unless somebody else has replaced it since
                namespace[name] = original
        watchers.clear()
        while self._stances:
            restore_stance(self._stances.pop())


patches = Patches()
"""The one for this process."""

steps.unpatched = patches.lifted
