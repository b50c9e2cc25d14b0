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

from torch import inference_mode

from saccade.attention import watchers
from saccade.interpretation.recording.calls import Calls
from saccade.interpretation.recording.naming import ModelMemory
from saccade.interpretation.recording.operators import rewatching
from saccade.interpretation.recording.references import References, Replacement
from saccade.interpretation.recording.threads import Recording, muted
from saccade.kernels import steps
from saccade.kernels.private_torch import COMPILER, FLEX_OPERATOR, restore_stance, run_uncompiled

ENDS = ("__enter__", "__exit__")
_INFERENCE_MODE = {name: vars(inference_mode)[name] for name in ENDS}


def _set_ends(methods: dict[str, Any]) -> None:
    for name, method in methods.items():
        setattr(inference_mode, name, method)


class Patches:
    """Replaces functions while at least one recording is active."""

    def __init__(self) -> None:
        self.calls = Calls()
        self._lock = threading.RLock()
        self._active = 0
        self._replaced: list[Replacement] = []
        self._stances: list[Any] = []
        self._inference_mode = {name: rewatching(self.calls.thread, method) for name, method in _INFERENCE_MODE.items()}
        # Callers compare these functions by identity.
        self._references = References(self.calls.wraps(), at_home={"has_torch_function", FLEX_OPERATOR[1]})

    def start(self, recording: Recording, structure: ModelMemory) -> None:
        """Starts to notify a recording of this thread's attention; nothing runs compiled in the meantime.

        Args:
            recording: what is notified.
            structure: of the model, whose modules may hold functions among their attributes.
        """
        with self._lock:
            try:
                if not self._active:
                    self._install(self._references.replacements())
                for reference in structure.holding(self._references.held):
                    module = reference()
                    self._replace([] if module is None else self._references.named(vars(module)))
                self.calls.start(recording)
            except BaseException:
                self._uninstall()
                raise
            self._active += 1

    def stop(self, recording: Recording) -> bool:
        """Ends a recording; the last one restores every function. Returns whether operators were replaced until now."""
        try:
            return self.calls.stop(recording)
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
                with muted():
                    yield
            finally:
                self._active = active
                if active:
                    self._install(replaced)

    def _replace(self, replacements: list[Replacement]) -> None:
        for each in replacements:
            namespace, name, original, replacement = each
            if namespace.get(name) is original:
                namespace[name] = replacement
                self._replaced.append(each)

    def _install(self, replacements: list[Replacement]) -> None:
        self._replace(replacements)
        _set_ends(self._inference_mode)
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
        _set_ends(_INFERENCE_MODE)
        watchers.clear()
        while self._stances:
            restore_stance(self._stances.pop())


patches = Patches()
"""The one for this process."""

steps.unpatched = patches.lifted
