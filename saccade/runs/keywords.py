"""Hints for keywords that a function of the library does not have."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from saccade.configuration.catalogue import described
from saccade.configuration.sections import SECTIONS
from saccade.registry import closest, nearest

P = ParamSpec("P")
R = TypeVar("R")


def suggesting(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: an unknown keyword is an error that names the section it belongs to, or the nearest keyword."""
    own = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for name, value in kwargs.items():
            if name not in own:
                raise TypeError(f"{function.__name__}() has no argument {name!r:.60}.{_hint(name, value, own)}")
        return function(*args, **kwargs)

    return call


def _hint(name: str, value: object, own: list[str]) -> str:
    if closest(name, own) is None:
        for section, about in SECTIONS.items():
            known = described(about.usual).parameters if about.kind is None and about.usual else {}
            close = name if name in known else closest(name, known)
            if close is not None and section in own:
                return f" Did you mean {section}={{{close!r}: {value!r:.60}}}?"
    return nearest(name, own)
