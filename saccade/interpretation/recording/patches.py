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

import torch
from torch import Tensor

from saccade.attention import watchers
from saccade.interpretation.recording.calls import Calls, Recording
from saccade.interpretation.recording.held import Held
from saccade.interpretation.recording.hidden import HiddenKernels
from saccade.interpretation.recording.naming import Names
from saccade.interpretation.recording.references import Namespace, References, Replacement, named
from saccade.kernels import steps
from saccade.kernels.private_torch import COMPILER, FLEX_OPERATOR


class Patches:
    """Replaces functions while at least one recording is active."""

    def __init__(self) -> None:
        self.calls = Calls()
        self._lock = threading.RLock()
        self._active = 0
        self._replaced: list[Replacement] = []
        self._methods: list[Any] = []
        self._stances: list[Any] = []
        self._wrapped: dict[Any, Any] = {}
        # Callers compare these functions by identity.
        self._hidden = HiddenKernels()
        self._references = References(self.calls.wraps(), at_home={"has_torch_function", FLEX_OPERATOR[1]})

    def start(self, recording: Recording, names: Names) -> bool:
        """Starts to notify a recording of this thread's attention; nothing runs compiled in the meantime.

        Args:
            recording: what is notified.
            names: the model's modules, which may hold functions under their own names, and so may the globals of their
                code.

        Returns:
            Whether the modules may call functions that were not replaced.
        """
        with self._lock:
            try:
                if not self._active:
                    self._install()
                found = self._references
                spaces = names.attributes
                known: Held | None = names.structure.held
                if known is None or not known.fits(spaces, found.ids):
                    known = names.structure.held = Held(names.modules, found.ids, self._hidden)
                hidden = known.hidden(spaces, self._hidden)
                own = [(spaces[number], name) for number, name in known.named]
                for namespace, name in own + named(names.code, found.ids):
                    self._replace(namespace, name, namespace[name], found.wrappers[id(namespace[name])])
            except BaseException:
                self._uninstall()
                raise
            self._active += 1
        self.calls.thread.recordings.append(recording)
        return hidden

    def stop(self, recording: Recording) -> None:
        """Ends a recording; the last one restores every function."""
        try:
            self.calls.thread.recordings.remove(recording)
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
                yield
            finally:
                self._active = active
                for each in replaced:
                    self._replace(*each)
                if active:
                    self._see_unnamed()

    def _install(self) -> None:
        for each in self._references.replacements():
            namespace, name, original, replacement = each
            if namespace.get(name) is original:
                namespace[name] = replacement
                self._replaced.append(each)
        self._see_unnamed()

    def _see_unnamed(self) -> None:
        """Sees what is not called by name, and keeps it from being compiled."""
        watchers.append(self.calls)
        original = Tensor.softmax
        if original not in self._wrapped:
            self._wrapped[original] = self.calls.softmax(original)
        self._methods.append(vars(Tensor).get("softmax"))
        Tensor.softmax = self._wrapped[original]  # type: ignore[method-assign]
        if COMPILER in sys.modules or FLEX_OPERATOR[0] in sys.modules:
            self._stances.append(torch.compiler.set_stance("force_eager"))

    def _uninstall(self) -> None:
        if self._active:
            return
        while self._replaced:
            namespace, name, original, replacement = self._replaced.pop()
            if namespace.get(name) is replacement:  # unless somebody else has replaced it since
                namespace[name] = original
        watchers.clear()
        while self._methods:
            own = self._methods.pop()
            if own is None:  # it is inherited
                del Tensor.softmax
            else:
                Tensor.softmax = own  # type: ignore[method-assign]
        while self._stances:
            self._stances.pop().__exit__(None, None, None)

    def _replace(self, namespace: Namespace, name: str, original: Any, replacement: Any) -> None:
        if namespace.get(name) is original:
            self._replaced.append((namespace, name, original, replacement))
            namespace[name] = replacement


patches = Patches()
"""The one for this process."""

steps.unpatched = patches.lifted
