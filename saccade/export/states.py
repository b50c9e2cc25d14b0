"""The state of a search as named tensors, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from torch import Tensor

from saccade.masks import Mask
from saccade.memory import Memory

LEFT_OUT = ("owner", "own_values", "tape")
"""Fields of a memory that are not part of the state's tensors."""


def parts(state: Any) -> dict[str, Any]:
    """What a state directly consists of, by name; nothing for a tensor or a plain value."""
    if isinstance(state, Memory | Mask):
        return {f.name: getattr(state, f.name) for f in dataclasses.fields(state) if f.name not in LEFT_OUT}  # type: ignore[arg-type]
    if isinstance(state, tuple) and hasattr(state, "_fields"):
        return dict(zip(state._fields, state, strict=True))
    if isinstance(state, tuple | list):
        return {str(number): part for number, part in enumerate(state)}
    return state if isinstance(state, dict) else {}


def leaves(state: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every tensor and plain value of a state, each with its path."""
    inner = parts(state)
    if not inner and not isinstance(state, tuple | list | dict | Memory | Mask):
        yield name, state
    for own, part in inner.items():
        yield from leaves(part, f"{name}_{own}" if name else own)


def tensors_of(state: Any) -> dict[str, Tensor]:
    """The tensors of a state by name; one that occurs twice is listed once."""
    found: dict[int, tuple[str, Tensor]] = {}
    for name, leaf in leaves(state):
        if isinstance(leaf, Tensor):
            found.setdefault(id(leaf), (name, leaf))
    return dict(found.values())


def plain_values(state: Any) -> dict[str, Any]:
    """Everything else in a state, which a graph keeps as constants."""
    return {name: leaf for name, leaf in leaves(state) if not isinstance(leaf, Tensor | Mask)}


def with_tensors(state: Any, tensors: Sequence[Tensor]) -> Any:
    """A state of the same form with other tensors, in the order of `tensors_of`."""
    numbers = {id(tensor): number for number, tensor in enumerate(tensors_of(state).values())}

    def rebuilt(part: Any) -> Any:
        if isinstance(part, Tensor):
            return tensors[numbers[id(part)]]
        inner = {name: rebuilt(each) for name, each in parts(part).items()}
        if isinstance(part, Memory):
            return dataclasses.replace(part, tape=None, **inner)
        if isinstance(part, Mask):
            return dataclasses.replace(part, **inner)  # type: ignore[type-var]
        if isinstance(part, tuple) and hasattr(part, "_fields"):
            return type(part)(**inner)
        if isinstance(part, tuple | list):
            return type(part)(inner.values())
        return inner if isinstance(part, dict) else part

    return rebuilt(state)
