"""Which module of a model a call comes from."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType

from torch import nn

from saccade.multihead import MultiHead

CROSS = ("cross", "encoder_attn", "encdec", "enc_dec", "multihead_attn", "src_attn", "context_attn")
SELF = ("self", "selfattention", "self_attn", "self_attention")


class Names:
    """The path of every module of a model, found again in the frames of the functions that run.

    No hook is registered: hooks are not called by methods other than `forward`, such as a decoder's `step`, and they
    keep PyTorch from taking its fast paths.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model  # ids are those of living modules only
        self._paths = {id(module): path.replace("_orig_mod.", "") for path, module in model.named_modules()}
        for module in model.modules():
            if isinstance(module, MultiHead):
                self._paths[id(module.attention)] = self._paths[id(module)]

    def caller(self) -> tuple[str, nn.Module, FrameType] | None:
        """The path of the innermost module that is running, the module, its frame; None outside the model."""
        for frame in _frames(sys._getframe(1)):
            module = _owner(frame)
            path = None if module is None else self._paths.get(id(module))
            if module is not None and path is not None:
                return path, module, frame
        return None

    @staticmethod
    def outermost(module: nn.Module, frame: FrameType) -> FrameType:
        """The frame furthest out in one running of the module: that of its `forward`, if it has begun there."""
        found = frame
        for outer in _frames(frame):
            owner = _owner(outer)
            if owner is module:
                found = outer
                if outer.f_code.co_name == "forward":
                    break
        return found


def kind_of(path: str) -> str | None:
    """ "self" or "cross" where the names of modules tell."""
    lower = path.lower()
    if any(word in lower for word in CROSS):
        return "cross"
    return "self" if any(part in SELF or part.startswith("self_") for part in lower.split(".")) else None


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _owner(frame: FrameType) -> nn.Module | None:
    """The module that a function runs for: its first argument, `self` or what it is called."""
    code = frame.f_code
    if not code.co_argcount:
        return None
    first = frame.f_locals.get(code.co_varnames[0])
    return first if isinstance(first, nn.Module) else None
