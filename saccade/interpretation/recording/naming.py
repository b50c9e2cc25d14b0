"""Which module of a model a call comes from."""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType

import torch
from torch import nn

from saccade.multihead import MultiHead

COMPILED = "_orig_mod"
CROSS = ("cross", "encoder_attn", "encdec", "enc_dec", "multihead_attn", "src_attn", "context_attn")
SELF = ("self", "selfattention", "self_attn", "self_attention")


class Names:
    """The path of every module of a model, found again in the frames of the functions that run.

    No hook is registered: hooks are not called by methods other than `forward`, such as a decoder's `step`, and they
    keep PyTorch from taking its fast paths.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model  # ids are those of living modules only
        self._paths: dict[int, str] = {}
        waiting = [(model, "")]  # what `named_modules` does, faster: short inputs would notice
        while waiting:
            module, path = waiting.pop()
            if id(module) in self._paths:
                continue
            self._paths[id(module)] = path
            kind = type(module)
            if issubclass(kind, torch.jit.ScriptModule):
                raise TypeError(f"{path or 'The model'} is TorchScript, which is not looked into: record the original.")
            if kind is MultiHead:
                self._paths.setdefault(id(module.attention), path)  # nothing below it attends
            inside = f"{path}." if path else ""
            for name, child in reversed(module._modules.items()):
                if child is not None:
                    waiting.append((child, path if name == COMPILED else inside + name))

    def path(self, frame: FrameType | None) -> str | None:
        """The path of the innermost module that is running in a frame; None outside of the model."""
        found = self._running(frame)
        return None if found is None else self._paths[id(found[0])]

    def forward(self, frame: FrameType | None) -> FrameType | None:
        """The frame of the `forward` of the innermost module that is running in a frame."""
        found = self._running(frame)
        if found is None:
            return None
        module, inner = found
        return next((outer for outer in _frames(inner) if _is_forward_of(module, outer)), inner)

    def _running(self, frame: FrameType | None) -> tuple[nn.Module, FrameType] | None:
        for outer in _frames(frame):
            module = _owner(outer)
            if module is not None and id(module) in self._paths:
                return module, outer
        return None


def _is_forward_of(module: nn.Module, frame: FrameType) -> bool:
    return frame.f_code.co_name == "forward" and _owner(frame) is module


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
