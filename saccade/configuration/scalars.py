"""Numbers, text, true, false and null, converted as an annotation requires."""

from __future__ import annotations

import math
import re
import types
import typing
from pathlib import Path
from typing import Any

from saccade.configuration.errors import ConfigError, shown

WHOLE_NUMBERS = range(1 - 2**31, 2**31)
MOST_CHARACTERS = 10_000
BAD = type("Bad", (), {"__repr__": lambda self: "BAD"})()
"""Marks a value that an annotation does not allow."""

PLAIN = (bool, int, float, str, types.NoneType)

WHOLE = re.compile(r"[+-]?\d(_?\d){0,18}")
POWER = re.compile(r"(\d{1,9})(?:\.0*)?[eE]\+?(\d)")
"""A whole number written as 1e5."""

WORDS = {"true": True, "yes": True, "false": False, "no": False}


def scalar(members: tuple[Any, ...], value: Any, allowed: range) -> Any:
    """The value as the first member of the union that takes it, or `BAD`.

    Values on the command line are text, so text becomes a number where a number is asked for and text is not.

    Args:
        members: the members of a union.
        value: true, false, a number, text or None.
        allowed: the whole numbers that are allowed.
    """
    if isinstance(value, str) and len(value) > MOST_CHARACTERS:
        raise ConfigError(f"{shown(value)} is longer than {MOST_CHARACTERS} characters.")
    if isinstance(value, str) and value == "null" and type(None) in members:
        return None
    for take in (_exact, _converted):
        for member in members:
            found = take(member, value)
            if found is not BAD:
                _check_size(found, allowed)
                return found
    return BAD


def _check_size(value: Any, allowed: range) -> None:
    if isinstance(value, int) and value not in allowed:
        limit = f"at most {allowed[-1]:,}" if value > 0 else f"{allowed[0]:,} or more"
        raise ConfigError(f"must be {limit}, got {shown(value)}.")
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{value} is not a finite number.")


def _exact(hint: Any, value: Any) -> Any:
    if typing.get_origin(hint) is typing.Literal:
        return next((c for c in typing.get_args(hint) if c == value and type(c) is type(value)), BAD)
    if hint is Any or (hint is None and value is None) or hint is type(value):
        return value
    return BAD


def _converted(hint: Any, value: Any) -> Any:
    if typing.get_origin(hint) is typing.Literal:
        return next((c for c in typing.get_args(hint) if isinstance(value, str) and str(c) == value), BAD)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value) if value in WHOLE_NUMBERS else value  # which is refused as too large
    if not isinstance(value, str):
        return BAD
    if hint is int and WHOLE.fullmatch(value.strip()):
        return int(value)
    if hint is int and (power := POWER.fullmatch(value.strip())):
        return int(power[1]) * 10 ** int(power[2])
    if hint is float:
        try:
            return float(value)
        except ValueError:
            return BAD
    if hint is bool:
        return WORDS.get(value.lower(), BAD)
    return Path(value) if hint is Path else BAD
