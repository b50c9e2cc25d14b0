"""Finds where functions are referred to by name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence, Set
from typing import Any

from saccade.kernels.private_torch import BINDINGS

Namespace = dict[str, Any]
Replacement = tuple[Namespace, str, Any, Any]
"""A namespace, a name in it, the original and its replacement."""
Wrap = Callable[[Any], Any]


class References:
    """All references to the functions to replace: in the modules that define them and in those that import them.

    The first search covers all loaded modules, later ones only those loaded since.

    Args:
        wraps: for each function the module that defines it, its name, and what makes its replacement.
        at_home: names of functions to replace only in the module that defines them.
    """

    def __init__(self, wraps: Sequence[tuple[str, str, Wrap]], *, at_home: Set[str]) -> None:
        self._wraps = wraps
        self._at_home = at_home
        self._definitions: list[Replacement] = []
        self._replacements: list[Replacement] = []
        self._searched: set[str] = set()
        self._found: list[Replacement] = []
        self._wrappers: dict[int, Any] = {}
        self._ids: frozenset[int] = frozenset()

    def replacements(self) -> list[Replacement]:
        """What to replace. Call it while nothing is replaced; some names may hold other values by now."""
        if len(sys.modules) != len(self._searched):
            self._search()
        for namespace, name, original, _ in self._definitions:
            if namespace.get(name) is not original:
                self._search()
                break
        # A notebook imports into a module that was searched long ago.
        main = getattr(sys.modules.get("__main__"), "__dict__", {})
        if self._ids.isdisjoint(map(id, main.values())):
            return self._replacements
        return [*self._replacements, *self.named(main)]

    def held(self, namespace: Namespace) -> bool:
        """Whether a namespace contains any of the functions."""
        return not self._ids.isdisjoint(map(id, namespace.values()))

    def _search(self) -> None:
        self._definitions = []
        for module, name, wrap in self._wraps:
            namespace = getattr(sys.modules.get(module), "__dict__", {})
            if name in namespace:
                self._definitions.append((namespace, name, namespace[name], wrap(namespace[name])))
        wrappers = {id(each): wrapper for _, name, each, wrapper in self._definitions if name not in self._at_home}
        if wrappers.keys() != self._ids:
            self._searched, self._found = set(), []
        self._wrappers, self._ids = wrappers, frozenset(wrappers)
        for module_name in list(sys.modules.keys() - self._searched):
            namespace = getattr(sys.modules.get(module_name), "__dict__", None)
            if isinstance(namespace, dict) and not module_name.startswith(BINDINGS):
                self._found += self.named(namespace)
        self._searched = set(sys.modules)
        self._replacements = [*(each for each in self._definitions if each[1] in self._at_home), *self._found]

    def named(self, namespace: Namespace) -> list[Replacement]:
        """What to replace in a namespace."""
        if not self.held(namespace):  # the usual case, and a fast check
            return []
        found = [(name, value) for name, value in list(namespace.items()) if id(value) in self._ids]
        return [(namespace, name, value, self._wrappers[id(value)]) for name, value in found]
