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
    """Takes note of a module that runs in this thread. A copy of it, or a saved one, has an idle hook."""

    def __init__(self, ran: dict[int, nn.Module] | None = None) -> None:
        self._ran = ran
        self._thread = threading.get_ident()

    def __call__(self, module: nn.Module, _: Any) -> None:
        if self._ran is not None and threading.get_ident() == self._thread:
            self._ran[id(vars(module))] = module

    def __reduce__(self) -> tuple[type[_Hook], tuple[()]]:
        return _Hook, ()


class Watch:
    """Notices which modules that look like attention run.

    These are modules with attention in their class name and no such module inside them. While something is recorded,
    the `forward` of their classes is replaced by one that notes which of them run. A module with a `forward` of its own
    gets a hook.

    Args:
        names: the modules of the model.
        ran: the modules that ran, by the id of their attributes, and perhaps others of these classes.
    """

    def __init__(self, names: Names, ran: dict[int, nn.Module]) -> None:
        self._ran = ran
        self._blocks: set[Place] = set()
        self._names = names
        self._hooked = [(names.modules[number], _Hook(ran)) for number in names.structure.held.forwards]
        for module, hook in self._hooked:
            add_pre_hook(module, id(hook), hook)

    def stop(self) -> None:
        """Removes the hooks."""
        for module, hook in self._hooked:
            remove_pre_hook(module, id(hook))

    def multiplied(self, place: Place, shape: Sequence[int], forward: FrameType | None) -> None:
        """Takes note of weights of this shape that `forward` multiplied by values.

        If it multiplies several of different sizes, and some have more axes than batch, heads, queries and keys, it
        attends in blocks.
        """
        if forward is None:
            return
        sizes = forward.f_locals.setdefault(f"saccade sizes {id(self)}", set())
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
        known = names.structure.attention_keys
        own = [(names.places[key], module) for key, module in self._ran.items() if key in known]
        ran = {place or ((), type(module).__name__): module for place, module in own}
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
