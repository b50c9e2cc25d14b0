"""What the modules of a model hold besides parameters and other modules."""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable, Sequence, Set
from typing import Any

from torch import nn

from saccade.interpretation.recording.hidden import HOLDERS, HiddenKernels
from saccade.interpretation.recording.references import Namespace, own_items

CONTAINERS = (dict, list, tuple)
REPLACEABLE = HOLDERS | {type(None), str, types.BuiltinFunctionType}
"""An attribute with such a value, or with another that can be called, may become a function without any other sign."""


class Held:
    """The functions among the attributes of a model's modules, found once.

    Looking at all attributes takes too long for a short input. So the next recording only checks that there are as many
    as before, and that those that were functions, other callables, names or None still have the same values.

    Args:
        modules: the model's modules.
        ids: of the functions to find.
        kernels: finds references that cannot be replaced.

    Attributes:
        named: the number of the module and the name of each attribute that is one of the functions.
    """

    def __init__(self, modules: Sequence[nn.Module], ids: Set[int], kernels: HiddenKernels) -> None:
        self._ids = ids
        self._count = 0
        self._watched: list[tuple[int, str]] = []
        self._values: list[Callable[[Any], bool]] = []
        self._containers: list[tuple[int, str]] = []
        self.named: list[tuple[int, str]] = []
        held = []
        for number, module in enumerate(modules):
            self._count += len(vars(module))
            for name, value in own_items(vars(module)):
                kind = type(value)
                if id(value) in ids:
                    self.named.append((number, name))
                if kind in CONTAINERS:
                    self._containers.append((number, name))
                elif kind in HOLDERS:
                    held.append(value)
                if kind in REPLACEABLE or callable(value):
                    self._watched.append((number, name))
                    self._values.append(_same(value))
        self._hidden = kernels.in_classes(modules, ids) or kernels.in_values(held, ids)

    def fits(self, spaces: Sequence[Namespace], ids: Set[int]) -> bool:
        """Whether modules with these attributes still hold what they held, as far as one can see quickly."""
        if ids is not self._ids or sum(map(len, spaces)) != self._count:
            return False
        return all(
            same(spaces[number].get(name)) for (number, name), same in zip(self._watched, self._values, strict=True)
        )

    def hidden(self, spaces: Sequence[Namespace], kernels: HiddenKernels) -> bool:
        """Whether the modules may call one of the functions by a reference that cannot be replaced."""
        if self._hidden:
            return True
        containers = [spaces[number][name] for number, name in self._containers]
        return kernels.in_values(containers, self._ids)


def _same(value: object) -> Callable[[Any], bool]:
    """Says whether another value is this one, which may hold the model, and must not keep it alive."""
    if type(value) in CONTAINERS:
        place = id(value)
        return lambda other: id(other) == place  # another one at this place is searched like this one
    try:
        reference = weakref.ref(value)
    except TypeError:  # names, None and built-in functions
        return lambda other: other is value
    return lambda other: reference() is other  # by id, a new function at the place of a freed one would be the same
