"""Which names of which modules stand for a function."""

from __future__ import annotations

import sys
from collections.abc import Set
from typing import Any

Namespace = dict[str, Any]


def held(namespace: Namespace, ids: Set[int]) -> list[str]:
    """The names in a namespace that stand for one of the objects with these ids."""
    if ids.isdisjoint(map(id, list(namespace.values()))):  # as most are, and soon seen
        return []
    return [name for name, value in list(namespace.items()) if id(value) in ids]


class Imports:
    """Where functions were imported to by name, such as by `from torch.nn.functional import softmax`.

    All loaded modules are looked through once, and later only those that were loaded since.
    """

    def __init__(self) -> None:
        self._ids: frozenset[int] = frozenset()
        self._looked_through: set[str] = set()
        self._places: list[tuple[Namespace, str]] = []

    def of(self, ids: frozenset[int]) -> list[tuple[Namespace, str]]:
        """The places of the objects with these ids; some may hold something else by now."""
        if ids != self._ids:
            self._ids, self._looked_through, self._places = ids, set(), []
        if len(sys.modules) != len(self._looked_through):
            for module_name in list(sys.modules.keys() - self._looked_through):
                namespace = getattr(sys.modules.get(module_name), "__dict__", None)
                if isinstance(namespace, dict):
                    self._places += [(namespace, name) for name in held(namespace, ids)]
            self._looked_through = set(sys.modules)
        return self._places
