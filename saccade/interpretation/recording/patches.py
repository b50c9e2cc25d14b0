"""The functions that are replaced while something is recorded, and restored afterwards.

PyTorch's functions belong to the whole process, so the replacements do too. Each of them first checks whether this
thread records; other threads are not affected.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from saccade.attention import Attention
from saccade.interpretation.recording.calls import Calls, Recording
from saccade.interpretation.recording.hidden import HiddenKernels
from saccade.interpretation.recording.references import Namespace, References, Replacement, Wrap, named, own_values
from saccade.kernels import steps
from saccade.kernels.private_torch import COMPILER, FLEX_OPERATOR


class Patches:
    """Replaces functions while at least one recording is active."""

    def __init__(self) -> None:
        self.calls = Calls()
        self._lock = threading.RLock()
        self._active = 0
        self._replaced: list[Replacement] = []
        self._overridden: list[tuple[type, str, Any]] = []
        self._stances: list[Any] = []
        self._wrapped: dict[Any, Any] = {}
        # Callers compare these functions by identity.
        self._hidden = HiddenKernels()
        self._references = References(self.calls.wraps(), at_home={"has_torch_function", FLEX_OPERATOR[1]})

    def start(self, recording: Recording, modules: Sequence[nn.Module], code: Iterable[Namespace]) -> bool:
        """Tells a recording of this thread's attention from now on; nothing runs compiled meanwhile.

        Args:
            recording: what is notified.
            modules: the model's modules, which may hold functions under their own names.
            code: the globals of the code of these modules, likewise.

        Returns:
            Whether the modules may call functions that were not replaced.
        """
        with self._lock:
            try:
                if not self._active:
                    self._install()
                found = self._references
                spaces = list(map(vars, modules))
                values = list(chain.from_iterable(map(own_values, spaces)))
                hidden = self._hidden.anywhere(modules, values, found.ids)
                own = named(spaces, found.ids) if not found.ids.isdisjoint(map(id, values)) else []
                for namespace, name in own + named(code, found.ids):
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
        """Within it nothing is replaced, for a compiler that traces the code it runs."""
        with self._lock:  # recordings of other threads wait
            replaced, overridden = list(self._replaced), [(*each, vars(each[0])[each[1]]) for each in self._overridden]
            active, self._active = self._active, 0
            self._uninstall()
            try:
                yield
            finally:
                self._active = active
                for each in replaced:
                    self._replace(*each)
                for owner, name, own, override in overridden:
                    self._overridden.append((owner, name, own))
                    setattr(owner, name, override)
                self._run_eagerly()

    def _install(self) -> None:
        for replacement in self._references.replacements():
            self._replace(*replacement)
        self._override(Attention, "read", self.calls.read)
        self._override(Attention, "note", self.calls.note)
        self._override(Attention, "watched", self.calls.watched)
        self._override(Tensor, "softmax", self.calls.softmax)
        self._run_eagerly()

    def _run_eagerly(self) -> None:
        if COMPILER in sys.modules or FLEX_OPERATOR[0] in sys.modules:
            self._stances.append(torch.compiler.set_stance("force_eager"))

    def _uninstall(self) -> None:
        if self._active:
            return
        while self._replaced:
            namespace, name, original, replacement = self._replaced.pop()
            if namespace.get(name) is replacement:  # unless somebody else has replaced it since
                namespace[name] = original
        while self._overridden:
            owner, name, own = self._overridden.pop()
            if own is None:
                delattr(owner, name)
            else:
                setattr(owner, name, own)
        while self._stances:
            self._stances.pop().__exit__(None, None, None)

    def _replace(self, namespace: Namespace, name: str, original: Any, replacement: Any) -> None:
        if namespace.get(name) is original:
            self._replaced.append((namespace, name, original, replacement))
            namespace[name] = replacement

    def _override(self, owner: type, name: str, wrap: Wrap) -> None:
        self._overridden.append((owner, name, vars(owner).get(name)))
        original = getattr(owner, name)
        if original not in self._wrapped:
            self._wrapped[original] = wrap(original)
        setattr(owner, name, self._wrapped[original])


patches = Patches()
"""The one for this process."""

steps.unpatched = patches.lifted
