"""Checks of arguments and of subclasses."""

from collections.abc import Collection
from typing import Any


def check_count(name: str, value: int, least: int = 1) -> None:
    """Rejects a value that is not a whole number or is below `least`."""
    if not hasattr(value, "__index__") or isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number, {least} or more, got {value!r}.")
    if value < least:
        raise ValueError(f"{name} must be {least} or more, got {value}.")


def check_share(name: str, value: float) -> None:
    """Rejects a share to drop that is not from 0 to less than 1."""
    if not 0.0 <= value < 1.0:
        raise ValueError(f"{name} must be from 0 to less than 1, got {value}.")


def keep_declared(cls: type, trait: str, methods: Collection[str], *, otherwise: Any = False) -> None:
    """Resets a trait in a subclass that overrides what the trait describes, unless it declares the trait again.

    Fast paths trust traits: a subclass must not inherit one that no longer holds.

    Args:
        cls: the subclass, in its `__init_subclass__`.
        trait: the name of the trait.
        methods: the names of the methods that it describes.
        otherwise: the value of the trait for other classes.
    """
    own = vars(cls)
    if trait not in own and not own.keys().isdisjoint(methods):
        setattr(cls, trait, otherwise)
