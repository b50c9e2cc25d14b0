"""Tensors in nested tuples, lists and dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor


def map_tensors(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Applies a function to every tensor, and to those in the same place of `others`; other values stay as they are."""
    if isinstance(tree, Tensor):
        return function(tree, *others)
    if isinstance(tree, tuple | list):
        parts = [map_tensors(function, *each) for each in zip(tree, *others, strict=True)]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    if isinstance(tree, dict):
        return {name: map_tensors(function, part, *(each[name] for each in others)) for name, part in tree.items()}
    return tree


def tensors_in(tree: Any) -> list[Tensor]:
    """All tensors, in order."""
    found: list[Tensor] = []
    map_tensors(found.append, tree)
    return found


def with_tensors(tree: Any, tensors: Sequence[Tensor]) -> Any:
    """The same nesting with other tensors, in the order of `tensors_in`."""
    remaining = iter(tensors)
    return map_tensors(lambda _: next(remaining), tree)
