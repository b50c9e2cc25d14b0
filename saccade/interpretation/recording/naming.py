"""Which module of a model makes a call."""

from __future__ import annotations

import inspect
import re
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain
from types import FrameType, FunctionType
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_module_registration_hook

from saccade.interpretation.recording.spare import Spare
from saccade.kernels.private_torch import CHILDREN, children
from saccade.multihead import MultiHead

ATTENTION = re.compile(r"attention|attn", re.IGNORECASE)
PART_OF_IT = re.compile(r"(output|mask|norm|bias|embeddings?|projection|gate|adapter\w*|pooling\w*)$", re.IGNORECASE)
"""Endings of class names of modules that only contribute to attention."""
NUMBER = re.compile(r"\d+")
LIBRARIES = ("torch.", "saccade.")
COMPILED = "_orig_mod"
LISTS = (nn.ModuleList, nn.ModuleDict, nn.Sequential)
CROSS = ("cross", "encoder_attn", "encdec", "enc_dec", "multihead_attn", "src_attn", "context_attn")
SELF = ("self", "selfattention", "self_attn", "self_attention")

CHILDLESS: frozenset[type] = frozenset(
    (
        *(type(None), nn.Linear, nn.Embedding, nn.Conv1d, nn.Conv2d, nn.Dropout, nn.Identity),
        *(nn.LayerNorm, nn.RMSNorm, nn.GELU, nn.ReLU, nn.SiLU, nn.Softmax, nn.Tanh),
    )
)
"""The most common kinds of modules. They do not attend and have no children; calls count for the module around."""


class ModelMemory:
    """What is remembered of a model from one recording to the next, without keeping it alive.

    Attributes:
        paths: of its modules but the childless kinds, by key; "" for the model itself.
        groups: the keys of the modules that look like attention, without those around others of them. Those whose
            paths differ only in numbers are together: they usually run together, and attend alike.
        attentions: the names of these modules.
        unhooked: the keys of those that a fused layer skips, unless they have hooks.
        trusted: the groups of which all modules were recorded the last time that any of them ran.
        spare: what the last trace has left.
        nodes: references to the modules, by key.
    """

    def __init__(self, model: nn.Module) -> None:
        _count_registrations()
        self._changes = _changes[0]
        self.paths: dict[int, str] = {}
        self.nodes: dict[int, weakref.ref[nn.Module]] = {}
        self.unhooked: set[int] = set()
        self._lists: list[weakref.ref[nn.Module]] = []
        self._add(model, "")
        groups = self._attentions()
        self.groups = list(groups.values())
        self.attentions = frozenset(self.paths[key] or type(model).__name__ for key in chain(*self.groups))
        self.trusted: set[int] = set()
        self.spare: Spare = deque()
        self._holding: list[weakref.ref[nn.Module]] | None = None
        self._inside = _children_of(self.nodes.values())
        self._listed = _children_of(self._lists)

    def _add(self, module: nn.Module, path: str) -> None:
        if isinstance(module, torch.jit.ScriptModule):
            where = path or "The model"
            raise TypeError(f"{where} is TorchScript, which cannot be recorded: record the original module.")
        key = _key(module)
        self.paths[key] = path
        self.nodes[key] = weakref.ref(module, _count_freed)
        if isinstance(module, nn.TransformerEncoderLayer):
            self.unhooked.add(_key(module.self_attn))
        if isinstance(module, LISTS):
            self._lists.append(self.nodes[key])
        whole = type(module) is MultiHead  # its attention counts as the module itself
        for each, child in children(module).items():
            if child is not None and type(child) not in CHILDLESS and _key(child) not in self.paths:
                below = path if whole or each == COMPILED else f"{path}.{each}" if path else each
                self._add(child, below)

    def _attentions(self) -> dict[tuple[str, type], list[int]]:
        around: set[str] = set()
        found: list[int] = []
        for key, path in reversed(self.paths.items()):  # modules come before those inside them
            if path in around or not _looks_like_attention(type(self.nodes[key]())):
                continue
            found.append(key)
            while path and path not in around:
                path = path.rpartition(".")[0]
                around.add(path)
        groups: dict[tuple[str, type], list[int]] = {}
        for key in reversed(found):
            alike = NUMBER.sub("*", self.paths[key]), type(self.nodes[key]())
            groups.setdefault(alike, []).append(key)
        return groups

    def may_fit(self) -> bool:
        """Whether the model seems to have these modules, as far as one can see at once.

        No module was registered or freed since. Lists of modules can also change without that.
        """
        return self._changes == _changes[0] and _children_of(self._lists) == self._listed

    def holding(self, held: Callable[[dict[str, Any]], bool]) -> list[weakref.ref[nn.Module]]:
        """The modules for whose attributes `held` is true; asked once."""
        if self._holding is None:
            modules = [(reference, reference()) for reference in self.nodes.values()]
            self._holding = [reference for reference, module in modules if module is not None and held(vars(module))]
        return self._holding

    def fits(self) -> bool:
        """Whether the model still has these modules."""
        self._changes = _changes[0]
        return _children_of(self.nodes.values()) == self._inside


_KNOWN: weakref.WeakKeyDictionary[nn.Module, ModelMemory] = weakref.WeakKeyDictionary()
_changes = [0]
"""How many modules of all models were registered, or ended that belonged to a model which had been recorded."""


def _children_of(references: Iterable[weakref.ref[nn.Module]]) -> tuple[list[str], list[int]]:
    """The names and ids of the modules inside others."""
    names: list[str] = []
    modules: list[nn.Module | None] = []
    for reference in references:
        module = reference()
        if module is not None:
            inside = module.__dict__[CHILDREN]
            names += inside
            modules += inside.values()
    return names, list(map(id, modules))


def _count_freed(_: Any, changes: list[int] = _changes) -> None:  # at the end of the process, globals are gone
    changes[0] += 1


def _count_registered(*_: Any) -> None:
    if not torch.compiler.is_compiling():  # compiled code would be compiled again whenever the number changes
        _changes[0] += 1


@cache
def _count_registrations() -> None:
    """From now on, every module that becomes part of another one is counted."""
    register_module_module_registration_hook(_count_registered)


class Names:
    """The path of every module of a model, looked up by the frames of running functions.

    No hooks are registered: methods other than `forward`, such as a decoder's `step`, do not call them, and they would
    disable PyTorch's fast paths.

    Comparing all modules of a model with those of the last recording takes too long for a short input. So this is done
    only if some module has been registered or freed since, if a list of modules has changed, or if a module attends
    that is not known.

    Attributes:
        model: the model.
        paths: of its modules but the childless kinds, by key; "" for the model itself.
        whole: the name of the model, in place of its empty path.
        structure: what is remembered of the model until the next recording.
        outside: the classes of other models that attended inside the model.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.whole = type(model).__name__
        self.outside: dict[str, None] = {}
        known = _KNOWN.get(model)
        if known is None:
            self._learn()
            return
        self.structure, self.paths = known, known.paths
        self._compared = False
        if not known.may_fit():
            self._compare()

    def _learn(self) -> None:
        self.structure = _KNOWN[self.model] = ModelMemory(self.model)
        self.paths = self.structure.paths
        self._compared = True

    def _compare(self) -> bool:
        """Compares the model with what is remembered of it, once; returns whether it has changed."""
        if self._compared:
            return False
        self._compared = True
        changed = not self.structure.fits()
        if changed:
            self._learn()
        return changed

    def path(self, frame: FrameType | None) -> str | None:
        """The path of the innermost module that runs in a frame; None outside the model.

        Another model that the model runs, such as the draft model of assisted generation, is outside.
        """
        unknown: list[nn.Module] | None = None
        inner = frame
        while inner is not None:
            code = inner.f_code
            owner = inner.f_locals.get(code.co_varnames[0]) if code.co_argcount else None  # as `_owner`, but faster
            if isinstance(owner, nn.Module):
                path = self.paths.get(id(owner.__dict__))
                if path is not None:
                    return path if unknown is None or self._part_of(owner, unknown) else None
                if type(owner) not in CHILDLESS and not type(owner).__module__.startswith(LIBRARIES):
                    if self._compare():
                        return self.path(frame)
                    unknown = [*(unknown or []), owner]
            inner = inner.f_back
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

    def outermost(self, frame: FrameType, end: FrameType) -> FrameType | None:
        """The outermost frame in which the model runs; frames from `end` on do not count.

        A function that has the model as its first argument may run it several times.
        """
        around = []
        inner: FrameType | None = frame
        while inner is not None and inner is not end:
            around.append(inner)
            inner = inner.f_back
        # From outside: asking a frame for one of its variables may copy all of them.
        for each in reversed(around):
            owner = _owner(each)
            if owner is not None and _key(owner) in self.paths and _is_part_of_run(owner, each):
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


def _is_part_of_run(module: nn.Module, frame: FrameType) -> bool:
    """Whether a function is a method of the module, or a search of Saccade, but not one that calls the module."""
    code = frame.f_code
    if code.co_qualname.rpartition(".")[0].rpartition(".")[2] not in ("", "<locals>"):  # defined in a class
        return True
    if frame.f_globals.get("__name__", "").startswith("saccade."):
        return True
    attributes = chain.from_iterable(vars(each).values() for each in (module, *type(module).__mro__))
    return any(_code_of(each) is code for each in attributes)


def _code_of(value: Any) -> Any:
    function = getattr(value, "__func__", value)
    return getattr(inspect.unwrap(function), "__code__", None) if isinstance(function, FunctionType) else None


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
