"""Which module of a model makes a call."""

from __future__ import annotations

import re
import weakref
from collections import deque
from collections.abc import Iterator
from itertools import chain
from operator import attrgetter
from types import FrameType

import torch
from torch import nn

from saccade.interpretation.recording.spare import Spare
from saccade.kernels.private_torch import CHILDREN, children
from saccade.multihead import MultiHead

ATTENTION = re.compile(r"attention|attn", re.IGNORECASE)
PART_OF_IT = re.compile(r"(output|mask|norm|bias|embeddings?|projection|gate|adapter\w*|pooling\w*)$", re.IGNORECASE)
"""Endings of class names of modules that only contribute to attention."""
NUMBER = re.compile(r"\d+")
LIBRARIES = ("torch.", "saccade.")
COMPILED = "_orig_mod"
CROSS = ("cross", "encoder_attn", "encdec", "enc_dec", "multihead_attn", "src_attn", "context_attn")
SELF = ("self", "selfattention", "self_attn", "self_attention")

CHILDLESS: frozenset[type] = frozenset(
    (
        *(type(None), nn.Linear, nn.Embedding, nn.Conv1d, nn.Conv2d, nn.Dropout, nn.Identity),
        *(nn.LayerNorm, nn.RMSNorm, nn.GELU, nn.ReLU, nn.SiLU, nn.Softmax, nn.Tanh),
    )
)
"""The most common kinds of modules. They do not attend and have no children; calls count for the module around."""


class Structure:
    """What is remembered of a model from one recording to the next, without keeping it alive.

    Attributes:
        paths: of its modules, by key; "" for the model itself.
        groups: the numbers of the modules that look like attention, without those around others of them. Those whose
            paths differ only in numbers are together: they usually run together, and attend alike.
        trusted: the groups of which all modules were recorded the last time that any of them ran.
        spare: what the last trace has left.
    """

    def __init__(self, modules: list[nn.Module], paths: dict[int, str], groups: list[list[int]]) -> None:
        self.paths, self.groups = paths, groups
        self.trusted: set[int] = set()
        self.spare: Spare = deque()
        self._modules = [weakref.ref(module) for module in modules]
        self._names, self._ids = _children_of(modules)

    def modules(self) -> list[nn.Module] | None:
        """The modules, or None if the model has other modules by now."""
        modules = [module for reference in self._modules if (module := reference()) is not None]
        return modules if _children_of(modules) == (self._names, self._ids) else None


_ATTRIBUTES = attrgetter("__dict__")
_KNOWN: weakref.WeakKeyDictionary[nn.Module, Structure] = weakref.WeakKeyDictionary()


def _children_of(modules: list[nn.Module]) -> tuple[list[str], list[int]]:
    """The names and ids of all modules inside these."""
    inside = [each[CHILDREN] for each in map(_ATTRIBUTES, modules)]
    return list(chain.from_iterable(inside)), list(map(id, chain.from_iterable(map(dict.values, inside))))


class Names:
    """The path of every module of a model, looked up by the frames of running functions.

    No hooks are registered: methods other than `forward`, such as a decoder's `step`, do not call them, and they would
    disable PyTorch's fast paths.

    Attributes:
        modules: all modules but the childless kinds.
        paths: of these, by key; "" for the model itself.
        whole: the name of the model, in place of its empty path.
        structure: what is remembered of the model until the next recording.
        outside: the classes of other models that attended inside the model.
    """

    def __init__(self, model: nn.Module) -> None:
        self.outside: dict[str, None] = {}
        self.whole = type(model).__name__
        self.paths: dict[int, str]
        known = _KNOWN.get(model)
        found = None if known is None else known.modules()
        if known is not None and found is not None:
            self.structure, self.modules, self.paths = known, found, known.paths
            return
        self.modules = [model]  # keeps them alive, so that ids stay unique
        self.paths = {_key(model): ""}
        self._look_inside(model, "")
        for module in self.modules:
            if isinstance(module, torch.jit.ScriptModule):
                where = self.path_of(module) or "The model"
                raise TypeError(f"{where} is TorchScript, which cannot be recorded: record the original module.")
        self.structure = _KNOWN[model] = Structure(self.modules, self.paths, self._attentions())

    def _attentions(self) -> list[list[int]]:
        """The numbers of the modules that look like attention, in groups: see `Structure.groups`."""
        groups: dict[tuple[str, type], list[int]] = {}
        around: set[str] = set()
        for number, module in reversed(list(enumerate(self.modules))):  # modules come before those inside them
            path = self.path_of(module)
            if path in around or not _looks_like_attention(type(module)):
                continue
            groups.setdefault((NUMBER.sub("*", path), type(module)), []).insert(0, number)
            while path and path not in around:
                path = path.rpartition(".")[0]
                around.add(path)
        return sorted(groups.values())

    def _look_inside(self, module: nn.Module, path: str) -> None:
        """As `named_modules`, but without the childless kinds."""
        paths, modules = self.paths, self.modules
        whole = type(module) is MultiHead  # its attention counts as the module itself
        for name, child in children(module).items():
            if type(child) in CHILDLESS or _key(child) in paths:
                continue
            assert child is not None
            below = path if whole or name == COMPILED else f"{path}.{name}" if path else name
            paths[_key(child)] = below
            modules.append(child)
            if children(child) and not whole:
                self._look_inside(child, below)

    def path(self, frame: FrameType | None) -> str | None:
        """The path of the innermost module that runs in a frame; None outside the model.

        Another model that the model runs, such as the draft model of assisted generation, is outside.
        """
        paths = self.paths
        unknown: list[nn.Module] | None = None
        while frame is not None:
            code = frame.f_code
            owner = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None  # as `_owner`, but faster
            if isinstance(owner, nn.Module):
                path = paths.get(id(owner.__dict__))
                if path is not None:
                    return path if unknown is None or self._part_of(owner, unknown) else None
                if type(owner) not in CHILDLESS and not type(owner).__module__.startswith(LIBRARIES):
                    unknown = [*(unknown or []), owner]
            frame = frame.f_back
        return None

    def _part_of(self, owner: nn.Module, unknown: list[nn.Module]) -> bool:
        """Whether modules unknown to the model are part of it: they have no parameters, or a module lists them."""
        if all(next(module.parameters(), None) is None for module in unknown):
            return True
        listed = [value for value in vars(owner).values() if isinstance(value, list | tuple | dict)]
        held = chain(*(value.values() if isinstance(value, dict) else value for value in listed))
        if {id(each) for each in held} & {id(module) for module in unknown}:
            return True
        self.outside[type(unknown[-1]).__name__] = None
        return False

    def modules_of(self, frame: FrameType | None) -> Iterator[nn.Module]:
        """The modules of the model that run in a frame, the innermost first."""
        for each in _frames(frame):
            owner = _owner(each)
            if owner is not None and _key(owner) in self.paths:
                yield owner

    def path_of(self, module: nn.Module) -> str:
        """The path of a module of the model."""
        return self.paths[_key(module)]

    def outermost(self, frame: FrameType, end: FrameType) -> FrameType | None:
        """The outermost frame that runs for a module of the model; frames from `end` on do not count."""
        around = []
        inner: FrameType | None = frame
        while inner is not None and inner is not end:
            around.append(inner)
            inner = inner.f_back
        # From outside: asking a frame for one of its variables may copy all of them.
        for each in reversed(around):
            owner = _owner(each)
            if owner is not None and _key(owner) in self.paths:
                return each
        return None

    def forward(self, frame: FrameType | None) -> FrameType | None:
        """The frame of the `forward` of the innermost module that runs in a frame."""
        inner = next((each for each in _frames(frame) if _key(_owner(each)) in self.paths), None)
        if inner is None:
            return None
        module = _owner(inner)
        return next((each for each in _frames(inner) if _is_forward_of(module, each)), inner)


def _looks_like_attention(kind: type) -> bool:
    name = kind.__name__
    part = ATTENTION.search(name) is None or PART_OF_IT.search(name) is not None
    return not part and not kind.__module__.startswith(LIBRARIES)


def _is_forward_of(module: nn.Module | None, frame: FrameType) -> bool:
    return frame.f_code.co_name == "forward" and _owner(frame) is module


def _key(module: nn.Module | None) -> int:
    """Identifies a module. The stand-ins that torch.export makes for a module share its attributes."""
    return id(None if module is None else module.__dict__)


def kind_of(path: str) -> str | None:
    """ "self" or "cross", if the path says so."""
    lower = path.lower()
    if any(word in lower for word in CROSS):
        return "cross"
    return "self" if any(part in SELF or part.startswith("self_") for part in lower.split(".")) else None


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _owner(frame: FrameType) -> nn.Module | None:
    """The module that a function runs for: its first argument, usually `self`."""
    code = frame.f_code
    if not code.co_argcount:
        return None
    first = frame.f_locals.get(code.co_varnames[0])
    return first if isinstance(first, nn.Module) else None
