"""Finding code that refers to kernels in a way that cannot be replaced."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Set
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from torch import nn

from saccade.interpretation.recording.function_mode import KERNELS

DEEP = 5
"""How many references are followed from the code of a module."""
LONG = 100
"""Longer lists and dictionaries are assumed to be data."""
HOLDERS = frozenset((partial, dict, list, tuple, types.FunctionType, types.MethodType))
TABLES = frozenset(("_nn", "ops"))
"""`torch._C._nn` and `torch.ops`, as code names them."""
LIBRARIES = ("torch.", "saccade.", "builtins.", "numpy.")


class HiddenKernels:
    """Whether a model may call a kernel through a reference that cannot be replaced by name.

    Such are default arguments, closures, partial functions, dictionaries, class attributes, and PyTorch's own tables
    (`torch.ops`, `torch._C._nn`). Each class is searched once.
    """

    def __init__(self) -> None:
        self._classes: WeakKeyDictionary[type, bool] = WeakKeyDictionary()

    def in_classes(self, modules: Iterable[nn.Module], ids: Set[int]) -> bool:
        """Whether the class of any of the modules refers to the functions with these ids."""
        for kind in set(map(type, modules)):
            if kind not in self._classes:
                own = [each for each in kind.__mro__ if not f"{each.__module__}.".startswith(LIBRARIES)]
                search = _Search(ids)
                self._classes[kind] = any(search.holds(value) for each in own for value in vars(each).values())
            if self._classes[kind]:
                return True
        return False

    def in_values(self, values: Iterable[Any], ids: Set[int]) -> bool:
        """Whether any of these values does."""
        search = _Search(ids)
        return any(search.holds(value) for value in values)


class _Search:
    def __init__(self, ids: Set[int]) -> None:
        self._ids = ids
        self._seen: dict[int, Any] = {}  # values stay alive, so that ids stay unique

    def holds(self, value: Any, depth: int = 0) -> bool:
        """Whether a value is, contains or calls one of the functions."""
        if id(value) in self._ids:
            return True
        if depth > DEEP or id(value) in self._seen or _is_data(value, self._ids):
            return False
        self._seen[id(value)] = value
        if isinstance(value, types.FunctionType):
            if f"{value.__module__}.".startswith(LIBRARIES):
                return False
            names = frozenset(_names(value.__code__))
            if not names.isdisjoint(TABLES) and not names.isdisjoint(KERNELS):
                return True
            # What a global name refers to is replaced there, unless something else holds it.
            used = [value.__globals__.get(name) for name in names]
            inside = [*_bound(value), *(each for each in used if type(each) in HOLDERS)]
        else:
            inside = _inside(value)
        return any(self.holds(each, depth + 1) for each in inside)


def _is_data(value: Any, ids: Set[int]) -> bool:
    """Whether a container is empty, too long, or holds neither functions nor other containers: a fast check."""
    if not isinstance(value, dict | list | tuple):
        return False
    inside = value.values() if isinstance(value, dict) else value
    return not 0 < len(value) <= LONG or (HOLDERS.isdisjoint(map(type, inside)) and ids.isdisjoint(map(id, inside)))


def _inside(value: Any) -> list[Any]:
    if isinstance(value, partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, staticmethod | classmethod | types.MethodType):
        return [value.__func__]
    return [value.fget] if isinstance(value, property) else []


def _bound(function: types.FunctionType) -> Iterator[Any]:
    """The values of a function's default arguments and closure."""
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # it has no value yet
            continue


def _names(code: types.CodeType) -> Iterator[str]:
    """The global names and attributes that a function uses, and those of the functions in it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
