"""Seeing every function of PyTorch that a model calls, where that is unavoidable."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

from torch.overrides import TorchFunctionMode

from saccade.interpretation.recording.recipes import Captured, Change
from saccade.interpretation.recording.softmaxes import EFFECT_OF, Effect, Softmaxes
from saccade.kernels.private_torch import function_modes, set_function_modes

IN_PLACE = {f"__i{name}__" for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor")}


class Role(NamedTuple):
    """What a function means to a recording: its effect on weights, and whether it overwrites its first argument."""

    effect: Effect | None = None
    writes: bool = False


NONE = Role()


class RecordingMode(TorchFunctionMode):
    """Follows the results of softmaxes, and reports tensors before they are overwritten.

    Every function that the model calls passes through a mode, which slows short inputs down. So the mode starts only
    when there is a softmax to follow or a kept tensor that may be overwritten; it stops with the recording.

    Args:
        softmaxes: the softmaxes to follow.
        written: called with tensors that are about to be overwritten.
        attended: called with completed attention, and the frame that called its last function.
        change_at: returns the change of the attention that is called in a frame, if there is one; None if nothing
            changes.
    """

    def __init__(
        self,
        *,
        softmaxes: Softmaxes,
        written: Callable[[Any], None],
        attended: Callable[[Callable[[], Captured], FrameType], None],
        change_at: Callable[[FrameType], Change | None] | None,
    ) -> None:
        super().__init__()
        self.started = False
        self._outer = function_modes()
        self._softmaxes = softmaxes
        self._written = written
        self._attended = attended
        self._change_at = change_at

    def start(self) -> None:
        """Enters just above the modes that were active at first: modes entered since have to leave before it."""
        if self.started:
            return
        self.started = True
        modes = function_modes()
        place = max((i + 1 for i, mode in enumerate(modes) if mode in self._outer), default=0)
        set_function_modes([*modes[:place], self, *modes[place:]])

    def stop(self) -> None:
        """Leaves, wherever it is among the active modes."""
        if self.started:
            set_function_modes([mode for mode in function_modes() if mode is not self])

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        role = _role(func)
        if role is NONE and not kwargs:
            return func(*args)
        kwargs = kwargs or {}
        if role.writes or "out" in kwargs:
            self._written(kwargs.get("out", args[0] if args else None))
        if role.effect is Effect.PRODUCT and self._change_at is not None and self._softmaxes.followed:
            change_at, frame = self._change_at, sys._getframe(1)
            given, options = self._softmaxes.changed(args, kwargs, lambda: change_at(frame))
            result = func(*given, **options)
        else:
            result = func(*args, **kwargs)
        if role.effect is not None and self._softmaxes.followed:
            attended = self._softmaxes.step(role.effect, args, kwargs, result)
            if attended is not None:
                self._attended(lambda: attended, sys._getframe(1))
        return result


@functools.lru_cache(maxsize=4096)
def _role(func: Any) -> Role:
    name = getattr(func, "__name__", "").partition(".")[0]
    operator = name.startswith("__") and name.endswith("__")
    writes = name == "__setitem__" or name in IN_PLACE if operator else name.endswith("_")
    role = Role(EFFECT_OF.get(name), writes)
    return NONE if role == NONE else role
