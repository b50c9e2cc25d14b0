"""Modules that look like attention and ran, but were not recorded."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Sequence, Set
from types import FrameType
from typing import Any, NamedTuple

from torch import nn

from saccade.interpretation.recording.kept import Kept
from saccade.interpretation.recording.naming import Names, Place, path_of
from saccade.interpretation.recording.softmaxes import Softmaxes
from saccade.kernels.private_torch import add_pre_hook, remove_pre_hook


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
    for the first time.

    Args:
        names: the modules of the model.
    """

    def __init__(self, names: Names) -> None:
        self._ran: list[nn.Module] = []
        self._blocks: set[Place] = set()
        self._mark = f"saccade sizes {id(self)}"
        self._names = names
        self._hook = _Hook(self._ran)
        for module in names.attentions:
            add_pre_hook(module, id(self._hook), self._hook)

    def stop(self) -> None:
        """Removes what is left of the hooks."""
        for module in self._names.attentions:
            remove_pre_hook(module, id(self._hook))

    def multiplied(self, place: Place, shape: Sequence[int], forward: FrameType | None) -> None:
        """Takes note of weights of this shape that `forward` multiplied by values.

        If it multiplies several of different sizes, and some have more axes than batch, heads, queries and keys, it
        attends in blocks.
        """
        if forward is None:
            return
        sizes = forward.f_locals.setdefault(self._mark, set())
        sizes.add((len(shape), *shape[-2:]))
        if len(sizes) > 1 and max(sizes)[0] > 4:
            self._blocks.add(place)

    def found(
        self,
        noted: Callable[[], list[tuple[Place, Kept]]],
        places: Set[Place],
        left_out: Iterable[str],
        softmaxes: Softmaxes,
    ) -> list[Missing]:
        """The missing attention; attention in blocks is removed from what was noted.

        Args:
            noted: gives the calls.
            places: where they were made.
            left_out: the paths of modules that were not to be recorded.
            softmaxes: those that were followed.
        """
        names = self._names
        known = [module for module in self._ran if names.has(module)]  # replicas have the hooks of the original
        ran = {names.place_of(module) or ((), type(module).__name__): module for module in known}
        if not self._blocks and not softmaxes.lost and not names.outside and ran.keys() <= places:
            return []
        reasons: dict[str, str] = {}
        for place in self._blocks:
            reasons[path_of(place)] = "it attends in blocks of queries and keys"
        if self._blocks:
            calls = noted()
            calls[:] = [(place, kept) for place, kept in calls if place not in self._blocks]
        recorded = {*map(path_of, places - self._blocks), *left_out}
        for place, module in ran.items():
            path = path_of(place)
            if path not in reasons and not any(f"{each}.".startswith(f"{path}.") for each in recorded):
                reasons[path] = f"{type(module).__name__} ran, and computes attention in a way that is not seen"
        for used, name, place in softmaxes.lost:
            path = path_of(place)
            if not used[0] and path not in recorded:
                reasons.setdefault(path, f"the result of a softmax was given to {name}, which is not followed")
        for kind in names.outside:
            reasons[kind] = "it is not part of the model: record it separately"
        return [Missing(path, reason) for path, reason in reasons.items()]


def warn(missing: Sequence[Missing], stacklevel: int) -> None:
    """Warns once about all missing attention."""
    told = "; ".join(f"{path} ({reason})" for path, reason in missing[:5])
    more = f"; and {len(missing) - 5} more, see trace.missing" if len(missing) > 5 else ""
    warnings.warn(f"Attention that is not in the trace: {told}{more}.", stacklevel=stacklevel)
