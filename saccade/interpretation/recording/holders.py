"""Which names of which modules stand for a function."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence, Set
from itertools import chain, islice
from typing import Any

from torch import nn

Namespace = dict[str, Any]
Change = tuple[Namespace, str, Any, Any]
"""Where, under which name, what stands there, and what shall."""
Wrap = Callable[[Any], Any]

OF_EVERY_MODULE = tuple(vars(nn.Module()))
"""Names in the namespace of each module, mostly its first ones; what they stand for is much, and no functions."""


def held(
    namespaces: Iterable[Namespace], ids: Set[int], values: Callable[[Namespace], Iterable[Any]] = dict.values
) -> list[tuple[Namespace, str]]:
    """Where one of the objects with these ids has a name; `values` are those that are looked at."""
    namespaces = list(namespaces)
    if ids.isdisjoint(map(id, chain.from_iterable(map(values, namespaces)))):  # as most are, and soon seen
        return []
    return [(each, name) for each in namespaces for name, value in list(each.items()) if id(value) in ids]


def own_values(namespace: Namespace) -> Iterable[Any]:
    """What a module has that not every module has; all if it got something before it was made a module."""
    others = len(namespace) - len(OF_EVERY_MODULE)
    if next(islice(namespace, len(OF_EVERY_MODULE) - 1, None), None) != OF_EVERY_MODULE[-1]:
        return namespace.values()
    return islice(reversed(namespace.values()), others)


class Places:
    """All places of functions that are to be replaced, at home and where they were imported to by name.

    All loaded modules are looked through once, and later only those that were loaded since.

    Args:
        wraps: the module where a function is at home, its name, and what makes its replacement.
        at_home: names of those that are not replaced where they were imported to.

    Attributes:
        wrappers: the replacement of each function by its id; not of those `at_home`.
        ids: the same ids.
    """

    def __init__(self, wraps: Sequence[tuple[str, str, Wrap]], *, at_home: Set[str]) -> None:
        self._wraps = wraps
        self._at_home = at_home
        self._homes: list[Change] = []
        self._changes: list[Change] = []
        self._looked_through: set[str] = set()
        self._places: list[tuple[Namespace, str]] = []
        self.wrappers: dict[int, Any] = {}
        self.ids: frozenset[int] = frozenset()

    def changes(self) -> list[Change]:
        """What is to be changed; some places may hold something else by now. To be asked while nothing is changed."""
        loaded = len(sys.modules) != len(self._looked_through)
        if loaded or any(namespace.get(name) is not original for namespace, name, original, _ in self._homes):
            self._find()
        # What a notebook imports comes to a module that was looked through long ago.
        names = held([getattr(sys.modules.get("__main__"), "__dict__", {})], self.ids)
        written = [(space, name, space[name], self.wrappers[id(space[name])]) for space, name in names]
        return [*self._changes, *written]

    def _find(self) -> None:
        self._homes = []
        for module, name, wrap in self._wraps:
            namespace = getattr(sys.modules.get(module), "__dict__", {})
            if name in namespace:
                self._homes.append((namespace, name, namespace[name], wrap(namespace[name])))
        wrappers = {id(original): wrapper for _, name, original, wrapper in self._homes if name not in self._at_home}
        if wrappers.keys() != self.ids:
            self._looked_through, self._places = set(), []
        self.wrappers, self.ids = wrappers, frozenset(wrappers)
        for module_name in list(sys.modules.keys() - self._looked_through):
            if module_name.startswith("torch._C"):  # where PyTorch itself asks which function it was called for
                continue
            namespace = getattr(sys.modules.get(module_name), "__dict__", None)
            if isinstance(namespace, dict):
                self._places += held([namespace], self.ids)
        self._looked_through = set(sys.modules)
        self._changes = [home for home in self._homes if home[1] in self._at_home]
        for namespace, name in self._places:
            original = namespace.get(name)
            if id(original) in wrappers:
                self._changes.append((namespace, name, original, wrappers[id(original)]))
