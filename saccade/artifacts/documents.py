"""Untrusted JSON: bounded before it is parsed, and checked key by key as it is read."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from types import NoneType
from typing import Any

import numpy as np

from saccade.artifacts.files import ArtifactError, open_regular

MOST_BYTES = 64 * 2**20
"""More than any JSON file of a run needs: a vocabulary of a million words takes about 20 MB."""
MOST_ITEMS = 4_000_000
"""Values in one file; each takes 50 to 100 bytes in memory, however short it is in the file."""
MOST_DEPTH = 32
MOST_DIGITS = 20
"""The most digits of a whole number: 64 bits and a sign."""

# Closing quotes are optional, so that a text that never closes is scanned once and not again from every quote in it.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_NO_BRACKETS = bytes(code for code in range(256) if code not in b"[{]}")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_KINDS: dict[type, str] = {
    int: "a whole number",
    float: "a number",
    str: "a string",
    bool: "true or false",
    list: "a list",
    dict: "an object",
    NoneType: "null",
}


def read_json(path: str | os.PathLike[str], *, most_bytes: int = MOST_BYTES, most_depth: int = MOST_DEPTH) -> Any:
    """The content of a JSON file; `ArtifactError` if it is damaged, too large or too deeply nested.

    A missing file is a `FileNotFoundError`, as everywhere in Python.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size  # Python reserves as much memory as it is asked to read
        data = file.read(min(size, most_bytes) + 1)
    return parse_json(data, str(path), most_bytes=most_bytes, most_depth=most_depth)


def parse_json(data: bytes, where: str, *, most_bytes: int = MOST_BYTES, most_depth: int = MOST_DEPTH) -> Any:
    """The same for bytes in memory; `where` names their origin in errors."""
    if len(data) > most_bytes:
        raise ArtifactError(f"{where} is too large: more than {most_bytes:,} bytes.")
    openings = data.count(b"[") + data.count(b"{")
    if openings + data.count(b",") > MOST_ITEMS:
        raise ArtifactError(f"{where} is too large: more than {MOST_ITEMS:,} values.")
    if openings > most_depth and nesting(data) > most_depth:
        raise ArtifactError(f"{where} is damaged: it is nested more than {most_depth} levels deep.")

    def whole(digits: str) -> int:
        if len(digits) > MOST_DIGITS:
            raise ArtifactError(f"{where} is damaged: it contains a whole number of {len(digits)} digits.")
        return int(digits)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            seen: set[str] = set()
            twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise ArtifactError(f"{where} is damaged: the key {twice[:80]!r} appears twice in one object.")
        return found

    try:
        value = json.loads(data.decode("utf-8"), parse_int=whole, object_pairs_hook=unique)
        if _SURROGATE.search(data):  # half a pair is not a character, and could not be printed or saved again
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise ArtifactError(f"{where} is damaged: it is not valid UTF-8 ({error.reason}).") from None
    except json.JSONDecodeError as error:
        raise ArtifactError(f"{where} is damaged: line {error.lineno} is not valid JSON ({error.msg}).") from None
    return value


def nesting(data: bytes) -> int:
    """How deeply the brackets outside strings are nested."""
    steps = _STRING.sub(b"", data).translate(_STEPS, _NO_BRACKETS)
    return int(np.frombuffer(steps, dtype=np.int8).cumsum(dtype=np.int32).max(initial=0))


class JsonObject:
    """A JSON object whose values are checked as they are taken; errors name the file and the key.

    Args:
        values: the parsed JSON.
        where: the file, for errors.
        inside: the key under which `values` stands in the file, for errors; empty for the whole file.
    """

    def __init__(self, values: Any, where: str, inside: str = "") -> None:
        self.where, self.inside = where, inside
        if not isinstance(values, dict):
            raise ArtifactError(f"{where} is damaged: {inside or 'its content'} is {_shown(values)}, not an object.")
        self.values: dict[str, Any] = values

    def take(self, key: str, *kinds: type, least: float | None = None, most: float | None = None) -> Any:
        """The value of a key that must exist and be of one of these types; whole numbers count as numbers."""
        if key not in self.values:
            raise self.wrong(key, "is missing")
        return self.check(key, self.values[key], *kinds, least=least, most=most)

    def check(self, key: str, value: Any, *kinds: type, least: float | None = None, most: float | None = None) -> Any:
        """A value found under `key`, if it is of one of these types and within these bounds."""
        accepted = (*kinds, int) if float in kinds else kinds
        if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in kinds):
            raise self.wrong(key, f"is {_shown(value)}, not {' or '.join(_KINDS[kind] for kind in kinds)}")
        if isinstance(value, int | float) and not (
            (least is None or value >= least) and (most is None or value <= most)
        ):
            raise self.wrong(key, f"is {_shown(value)}, not {_range(least, most)}")
        return value

    def take_list(self, key: str, *kinds: type, length: int | None = None, **bounds: float) -> list[Any]:
        """The value of a key that must be a list whose items are of these types."""
        values: list[Any] = self.take(key, list)
        if length is not None and len(values) != length:
            raise self.wrong(key, f"has {len(values)} values, not {length}")
        for place, value in enumerate(values):
            self.check(f"{key}[{place}]", value, *kinds, **bounds)
        return values

    def inner(self, key: str) -> JsonObject:
        """The value of a key that must be an object itself."""
        return JsonObject(self.take(key, dict), self.where, self._full(key))

    def only(self, keys: Iterable[str]) -> None:
        """Rejects keys that are not among these."""
        unknown = sorted(self.values.keys() - set(keys))
        if unknown:
            raise self.wrong(unknown[0][:80], "is not a key that belongs there")

    def wrong(self, key: str, problem: str) -> ArtifactError:
        """The error to raise for a value: `wrong("step", "is missing")`."""
        return ArtifactError(f"{self.where} is damaged: {self._full(key)} {problem}.")

    def _full(self, key: str) -> str:
        return f"{self.inside}.{key}" if self.inside else key


def _shown(value: Any) -> str:
    text = json.dumps(value) if isinstance(value, str | int | float | NoneType) else _KINDS.get(type(value), "")
    return text if len(text) <= 60 else f"{text[:60]}..."


def _range(least: float | None, most: float | None) -> str:
    if least is None:
        return f"{most} or less"
    return f"{least} or more" if most is None else f"between {least} and {most}"
