"""Intercepting every PyTorch function that a model calls, where that is unavoidable."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, NamedTuple

from torch import Tensor
from torch.overrides import TorchFunctionMode

from saccade.interpretation.recording.effects import EFFECT_OF, Effect
from saccade.interpretation.recording.recipes import Captured, Change
from saccade.interpretation.recording.softmaxes import Softmaxes
from saccade.kernels.private_torch import function_modes, set_function_modes


class Role(NamedTuple):
    """What a function means to a recording."""

    name: str
    effect: Effect


class RecordingMode(TorchFunctionMode):
    """Follows the results of softmaxes.

    Every function that the model calls passes through a mode, which slows short inputs down. So the mode starts only
    when there is a softmax to follow; it stops with the recording.

    Args:
        outer: the modes that were active when the recording started.
        softmaxes: the softmaxes to follow.
        attended: called with completed attention, the frame that called its last function, and the values read.
        path_at: the path of the module that runs in a frame.
        change_at: returns the change of the attention that is called in a frame, if there is one; None if nothing
            changes.
    """

    def __init__(
        self,
        *,
        outer: Sequence[TorchFunctionMode],
        softmaxes: Softmaxes,
        attended: Callable[[Callable[[], Captured], FrameType, Tensor | None], None],
        path_at: Callable[[FrameType], str | None],
        change_at: Callable[[FrameType], Change | None] | None,
    ) -> None:
        super().__init__()
        self._outer = outer
        self._softmaxes = softmaxes
        self._attended = attended
        self._path_at = path_at
        self._change_at = change_at

    def start(self) -> None:
        """Enters just above the modes that were active at first: modes entered since have to leave before it."""
        modes = function_modes()
        place = max((i + 1 for i, mode in enumerate(modes) if mode in self._outer), default=0)
        set_function_modes([*modes[:place], self, *modes[place:]])

    def stop(self) -> None:
        """Leaves, wherever it is among the active modes."""
        set_function_modes([mode for mode in function_modes() if mode is not self])

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        role = _role(func)
        if role is None or not self._softmaxes.followed:
            return func(*args, **kwargs) if kwargs else func(*args)
        kwargs = kwargs or {}
        frame = sys._getframe(1)
        if role.effect is Effect.KEPT:
            self._softmaxes.keep_from_dropout(role.name, args, kwargs)
        if role.effect is Effect.PRODUCT and self._change_at is not None:
            change_at, path = self._change_at, self._path_at(frame)
            given, options = self._softmaxes.changed(role.name, args, kwargs, lambda: change_at(frame), path)
            result = func(*given, **options)
        else:
            result = func(*args, **kwargs)
        completed = self._softmaxes.step(role.effect, args, kwargs, result, role.name, lambda: self._path_at(frame))
        if completed is not None:
            self._attended(lambda: completed.attended, frame, completed.values)
        return result


@functools.lru_cache(maxsize=4096)
def _role(func: Any) -> Role | None:
    name = getattr(func, "__name__", "").partition(".")[0]
    if name == "__get__":  # of a property, such as mT
        name = getattr(func.__self__, "__name__", "")
    effect = EFFECT_OF.get(name)
    return None if effect is None else Role(name, effect)
