"""Finds where functions are referred to by name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any

from saccade.kernels.private_torch import BINDINGS

Namespace = dict[str, Any]
Replacement = tuple[Namespace, str, Any, Any]
"""A namespace, a name in it, the original and its replacement."""
Wrap = Callable[[Any], Any]


def named(namespaces: Iterable[Namespace], ids: Set[int]) -> list[tuple[Namespace, str]]:
    """The names of the objects with these ids."""
    found = []
    for each in namespaces:
        if not ids.isdisjoint(map(id, each.values())):  # rare, and this is a fast check
            found += [(each, name) for name, value in list(each.items()) if id(value) in ids]
    return found


class References:
    """All references to the functions to replace: in the modules that define them and in those that import them.

    The first search covers all loaded modules, later ones only those loaded since.

    Args:
        wraps: for each function the module that defines it, its name, and what makes its replacement.
        at_home: names of functions to replace only in the module that defines them.

    Attributes:
        wrappers: the replacement of each function by its id, without those in `at_home`.
        ids: the same ids.
    """

    def __init__(self, wraps: Sequence[tuple[str, str, Wrap]], *, at_home: Set[str]) -> None:
        self._wraps = wraps
        self._at_home = at_home
        self._definitions: list[Replacement] = []
        self._replacements: list[Replacement] = []
        self._searched: set[str] = set()
        self._found: list[tuple[Namespace, str]] = []
        self.wrappers: dict[int, Any] = {}
        self.ids: frozenset[int] = frozenset()

    def replacements(self) -> list[Replacement]:
        """What to replace. Call it while nothing is replaced; some names may hold other values by now."""
        loaded = len(sys.modules) != len(self._searched)
        if loaded or any(namespace.get(name) is not original for namespace, name, original, _ in self._definitions):
            self._search()
        # A notebook imports into a module that was searched long ago.
        names = named([getattr(sys.modules.get("__main__"), "__dict__", {})], self.ids)
        written = [(space, name, space[name], self.wrappers[id(space[name])]) for space, name in names]
        return [*self._replacements, *written]

    def _search(self) -> None:
        self._definitions = []
        for module, name, wrap in self._wraps:
            namespace = getattr(sys.modules.get(module), "__dict__", {})
            if name in namespace:
                self._definitions.append((namespace, name, namespace[name], wrap(namespace[name])))
        wrappers = {id(each): wrapper for _, name, each, wrapper in self._definitions if name not in self._at_home}
        if wrappers.keys() != self.ids:
            self._searched, self._found = set(), []
        self.wrappers, self.ids = wrappers, frozenset(wrappers)
        for module_name in list(sys.modules.keys() - self._searched):
            if module_name.startswith(BINDINGS):
                continue
            namespace = getattr(sys.modules.get(module_name), "__dict__", None)
            if isinstance(namespace, dict):
                self._found += named([namespace], self.ids)
        self._searched = set(sys.modules)
        self._replacements = [each for each in self._definitions if each[1] in self._at_home]
        for namespace, name in self._found:
            original = namespace.get(name)
            if id(original) in wrappers:
                self._replacements.append((namespace, name, original, wrappers[id(original)]))
