"""Seeing every function of PyTorch, where that cannot be avoided."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack, _pop_mode, _push_mode

from saccade.interpretation.recording.recipes import Attended
from saccade.interpretation.recording.softmaxes import PART_OF, Part, Softmaxes

IN_PLACE = {f"__i{name}__" for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor")}


class Role(NamedTuple):
    """What a function of PyTorch is to a recording: a part of attention, a change of its first argument."""

    part: Part | None = None
    writes: bool = False


NOTHING = Role()
ROLES: dict[Any, Role] = {}
"""Of the functions that were met."""


class Watch(TorchFunctionMode):
    """Tells what becomes of softmaxes, and which tensors are about to be overwritten.

    Every function that the model calls comes through here, which short inputs notice. So it starts when there is a
    softmax to follow or something kept that may be overwritten, and stops with the recording.

    Args:
        softmaxes: to follow.
        written: told of tensors before they are overwritten.
        attended: told of attention that is complete, and of the frame that called the last function of it.
    """

    def __init__(
        self,
        *,
        softmaxes: Softmaxes,
        written: Callable[[Any], None],
        attended: Callable[[Callable[[], Attended], FrameType], None],
    ) -> None:
        super().__init__()
        self.started = False
        self._outside = _get_current_function_mode_stack()
        self._softmaxes = softmaxes
        self._written = written
        self._attended = attended

    def start(self) -> None:
        """Takes its place above the modes that were there at first: those that came later have to leave before it."""
        if self.started:
            return
        self.started = True
        modes = _get_current_function_mode_stack()
        place = max((i + 1 for i, mode in enumerate(modes) if mode in self._outside), default=0)
        _set_modes([*modes[:place], self, *modes[place:]])

    def stop(self) -> None:
        """Leaves its place, wherever it is by now."""
        if self.started:
            _set_modes([mode for mode in _get_current_function_mode_stack() if mode is not self])

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        role = ROLES.get(func)
        if role is NOTHING and not kwargs:
            return func(*args)
        kwargs = kwargs or {}
        if role is None:
            role = ROLES[func] = _role(func)
        if role.writes or "out" in kwargs:
            self._written(kwargs.get("out", args[0] if args else None))
        result = func(*args, **kwargs)
        if role.part is not None and self._softmaxes.followed:
            attended = self._softmaxes.step(role.part, args, kwargs, result)
            if attended is not None:
                self._attended(lambda: attended, sys._getframe(1))
        return result


def _set_modes(modes: list[TorchFunctionMode]) -> None:
    for _ in _get_current_function_mode_stack():
        _pop_mode()
    for mode in modes:
        _push_mode(mode)


def _role(func: Any) -> Role:
    name = getattr(func, "__name__", "").partition(".")[0]
    operator = name.startswith("__") and name.endswith("__")
    writes = name == "__setitem__" or name in IN_PLACE if operator else name.endswith("_")
    role = Role(PART_OF.get(name), writes)
    return NOTHING if role == NOTHING else role
