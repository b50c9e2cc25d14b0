"""Which names of which modules stand for a function."""

from __future__ import annotations

import sys
from collections.abc import Sequence, Set
from itertools import chain
from typing import Any

Namespace = dict[str, Any]


def held(namespaces: Sequence[Namespace], ids: Set[int]) -> list[tuple[Namespace, str]]:
    """Where one of the objects with these ids has a name."""
    if ids.isdisjoint(map(id, chain.from_iterable(map(dict.values, namespaces)))):  # as most are, and soon seen
        return []
    return [(each, name) for each in namespaces for name, value in list(each.items()) if id(value) in ids]


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
                    self._places += held([namespace], ids)
            self._looked_through = set(sys.modules)
        return self._places
