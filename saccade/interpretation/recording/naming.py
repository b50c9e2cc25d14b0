"""Which module of a model a call comes from."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from types import FrameType
from typing import Any

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

    Attributes:
        namespaces: of the modules and of the code of their `forward`, where functions may have names of their own.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model  # ids are those of living modules only
        self._paths: dict[int, str] = {id(model): ""}
        self._kinds: dict[type, dict[str, Any] | None] = {}
        self.namespaces: list[dict[str, Any]] = []
        self._meet(model, "")
        self._name_inside(model, "")
        self.namespaces += {id(names): names for names in self._kinds.values() if names is not None}.values()

    def _name_inside(self, module: nn.Module, path: str) -> None:
        """What `named_modules` does, faster: short inputs would notice."""
        inside = f"{path}." if path else ""
        paths, kinds = self._paths, self._kinds
        for name, child in module._modules.items():
            if child is None or id(child) in paths:
                continue
            below = paths[id(child)] = path if name == COMPILED else inside + name
            if kinds.get(type(child), kinds) is not None:  # an unknown kind, or one that is not PyTorch's
                self._meet(child, below)
            if child._modules:
                self._name_inside(child, below)

    def _meet(self, module: nn.Module, path: str) -> None:
        kind: Any = type(module)
        if kind not in self._kinds:
            if issubclass(kind, torch.jit.ScriptModule):
                raise TypeError(f"{path or 'The model'} is TorchScript, which is not looked into: record the original.")
            self._kinds[kind] = _globals(kind)
        if self._kinds[kind] is not None:
            self.namespaces.append(vars(module))
        if kind is MultiHead:
            self._paths.setdefault(id(module.attention), path)  # nothing below it attends

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
        while frame is not None:
            module = _owner(frame)
            if module is not None and id(module) in self._paths:
                return module, frame
            frame = frame.f_back
        return None


@functools.lru_cache(maxsize=256)
def _globals(kind: type[nn.Module]) -> dict[str, Any] | None:
    """Where the code of a kind of module looks up names; None for PyTorch's own."""
    if kind.__module__.startswith("torch."):
        return None
    return getattr(inspect.unwrap(kind.forward), "__globals__", {})


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
