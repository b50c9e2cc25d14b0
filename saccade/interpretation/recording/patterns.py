"""Patterns that stand for modules."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from fnmatch import fnmatchcase


def matches(path: str, pattern: str) -> bool:
    """Whether a pattern matches a path, or some consecutive parts of it."""
    return fnmatchcase(path, pattern) or fnmatchcase(f".{path}.", f"*.{pattern}.*")


def is_inside(path: str, around: str) -> bool:
    """Whether a module is inside another one; "" is the whole model."""
    return path != around and (not around or path.startswith(f"{around}."))


def find_path(asked: str, by_path: Mapping[str, Sized]) -> tuple[str, int]:
    """The one path and call that a name such as `attention.3#2` stands for; the `KeyError` lists what exists.

    Args:
        asked: a path, a part of it or a pattern, and perhaps the number of a call.
        by_path: the calls of each path.
    """
    part, _, digits = asked.partition("#")
    number = int(digits) if digits.isdecimal() else 0
    found = [path for path in by_path if matches(path, part)]
    ending = [path for path in found if f".{path}".endswith(f".{part}")]
    if len(ending) == 1:
        found = ending
    if len(found) > 1:
        raise KeyError(f"{asked!r} matches {len(found)} modules: {', '.join(found)}.")
    if not found:
        raise KeyError(f"No attention was recorded under {asked!r}, only under {', '.join(by_path)}.")
    if number >= len(by_path[found[0]]):
        raise KeyError(f"{asked!r} does not exist: {found[0]!r} was called {len(by_path[found[0]])} times.")
    return found[0], number
