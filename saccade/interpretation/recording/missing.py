"""Modules that look like attention and ran, but were not recorded."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Sequence, Set
from types import FrameType
from typing import Any, NamedTuple

from torch import nn

from saccade.interpretation.recording.kept import Kept
from saccade.interpretation.recording.naming import Names
from saccade.interpretation.recording.softmaxes import Softmaxes
from saccade.kernels.private_torch import add_pre_hook, remove_pre_hook

NOT_THIS_TIME = "was recorded before, but not this time: it was skipped, or attends in a way that is not seen"


class Missing(NamedTuple):
    """Attention that is not in a trace.

    Args:
        path: of the module, or the name of its class if it is not part of the model.
        reason: why.
    """

    path: str
    reason: str


class _Hook:
    """Takes note of a module that runs in this thread, once. A copy of it, or a saved one, has an idle hook."""

    def __init__(self, ran: list[nn.Module] | None = None) -> None:
        self._ran = ran
        self._thread = threading.get_ident()

    def __call__(self, module: nn.Module, _: Any) -> None:
        if self._ran is not None and threading.get_ident() == self._thread:
            self._ran.append(module)
            remove_pre_hook(module, id(self))

    def __reduce__(self) -> tuple[type[_Hook], tuple[()]]:
        return _Hook, ()


class Watch:
    """Notices which modules that look like attention run.

    These are modules with attention in their class name and no such module inside them. Each has a hook until it runs
    for the first time. Hooks slow a model down, so of alike modules that were all recorded the last time only the first
    and the last have one: those between modules that ran are expected to have run. In training, where layers may be
    skipped, all have. PyTorch's encoder layers would not be fused if the attention inside them had one.

    Args:
        names: the modules of the model.
    """

    def __init__(self, names: Names) -> None:
        self._ran: list[nn.Module] = []
        self._blocks: set[str] = set()
        self._names = names
        self._hook = _Hook(self._ran)
        self._structure = names.structure
        self._expected = set() if names.model.training else self._structure.trusted
        keys = [
            key
            for index, group in enumerate(self._structure.groups)
            for key in ({group[0], group[-1]} if index in self._expected else group)
        ]
        skipped = self._structure.unhooked
        self._hooked = [
            module for key in keys if key not in skipped and (module := self._structure.nodes[key]()) is not None
        ]
        for module in self._hooked:
            add_pre_hook(module, id(self._hook), self._hook)

    def stop(self) -> None:
        """Removes what is left of the hooks."""
        for module in self._hooked:
            remove_pre_hook(module, id(self._hook))

    def multiplied(self, path: str, shape: Sequence[int], forward: FrameType | None) -> None:
        """Takes note of weights of this shape that `forward` multiplied by values.

        If it multiplies several of different sizes, and some have more axes than batch, heads, queries and keys, it
        attends in blocks.
        """
        if forward is None:
            return
        sizes = forward.f_locals.setdefault(f"saccade sizes {id(self)}", set())
        sizes.add((len(shape), *shape[-2:]))
        if len(sizes) > 1 and max(sizes)[0] > 4:
            self._blocks.add(path)

    def found(
        self,
        noted: Callable[[], list[tuple[str, Kept]]],
        paths: Set[str],
        left_out: Set[str],
        softmaxes: Softmaxes,
    ) -> list[Missing]:
        """The missing attention; attention in blocks is removed from what was noted.

        Args:
            noted: gives the calls.
            paths: of the modules that made them.
            left_out: the paths of modules that were not to be recorded.
            softmaxes: those that were followed.
        """
        names, structure = self._names, self._names.structure
        if structure.attentions <= paths and not (self._blocks or softmaxes.lost or names.outside):  # the usual case
            structure.trusted = set(range(len(structure.groups)))
            return []
        reasons: dict[str, str] = {}
        for path in self._blocks:
            reasons[path] = "it attends in blocks of queries and keys"
        if self._blocks:
            calls = noted()
            calls[:] = [(path, kept) for path, kept in calls if path not in self._blocks]
        recorded = (paths - self._blocks) | left_out
        for path, reason in self._unseen(recorded):
            reasons.setdefault(path, reason)
        for lost in softmaxes.lost:
            if not lost.used:
                reasons.setdefault(lost.path or names.whole, lost.reason)
        for kind in names.outside:
            reasons[kind] = "it is not part of the model: record it separately"
        return [Missing(path, reason) for path, reason in reasons.items()]

    def _unseen(self, recorded: Set[str]) -> Iterator[tuple[str, str]]:
        """The paths of modules that ran, but were not recorded, with the reason; updates which groups are trusted."""
        structure = self._names.structure
        expected = self._expected if structure is self._structure else set()  # otherwise the model has changed
        ran = {id(vars(module)) for module in self._ran}
        for index, group in enumerate(structure.groups):
            missed = [key for key in group if not _covered(self._name(key), recorded)]
            if not missed:
                structure.trusted.add(index)
                continue
            known = [key for key in missed if key in ran]
            between: list[int] = []
            if index in expected:
                reached = max((n for n, key in enumerate(group) if key in ran or key not in missed), default=0)
                between = [key for key in group[1:reached] if key in missed]
            if known or between:
                structure.trusted.discard(index)
            for key in missed:
                if key in known:
                    yield self._name(key), f"{self._kind(key)} ran, and computes attention in a way that is not seen"
                elif key in between:
                    yield self._name(key), f"{self._kind(key)} {NOT_THIS_TIME}"

    def _kind(self, key: int) -> str:
        return type(self._names.structure.nodes[key]()).__name__

    def _name(self, key: int) -> str:
        return self._names.paths[key] or self._names.whole


def _covered(path: str, recorded: Set[str]) -> bool:
    """Whether a module, or one inside it, was recorded."""
    return path in recorded or any(each.startswith(f"{path}.") for each in recorded)


def warn(missing: Sequence[Missing], stacklevel: int) -> None:
    """Warns once about all missing attention."""
    told = "; ".join(f"{path} ({reason})" for path, reason in missing[:5])
    more = f"; and {len(missing) - 5} more, see trace.missing" if len(missing) > 5 else ""
    warnings.warn(f"Attention that is not in the trace: {told}{more}.", stacklevel=stacklevel)
