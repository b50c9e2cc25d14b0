"""Inputs as they come over HTTP."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from saccade.fields import Field
from saccade.serving.hosting import BadInput, Version
from saccade.tasks import Example

BASE64 = "base64"


def read_inputs(version: Version, inputs: Sequence[Any]) -> list[Example]:
    """The examples that inputs stand for; `BadInput` names the first that cannot be used, counted from 0."""
    raw = []
    for number, value in enumerate(inputs):
        try:
            raw.append(_decoded(version, value))
        except BadInput as error:
            raise BadInput(f"inputs[{number}]: {error}") from None
    return _read(version, raw, "inputs")


def read_contents(version: Version, contents: Sequence[bytes]) -> list[Example]:
    """The same for the contents of files, of a model whose only input is a file."""
    return _read(version, contents, "files")


def _read(version: Version, raw: Sequence[Any], where: str) -> list[Example]:
    try:
        return list(version.read(raw))
    except (TypeError, ValueError, OverflowError) as found:
        for number, value in enumerate(raw):  # which one was it?
            try:
                version.read([value])
            except (TypeError, ValueError, OverflowError) as error:
                raise BadInput(f"{where}[{number}]: {plain(error)}") from None
        raise BadInput(f"{where}: {plain(found)}") from None


def cost(version: Version, example: Example) -> int:
    """The positions of an example; a model may read fewer."""
    return max(1, version.task.length(example))


def plain(error: Exception) -> str:
    """An error about an input without the file and line that stand for the place of data in memory."""
    problem = getattr(error, "problem", None)
    return str(error) if problem is None else f"{problem}."


def _decoded(version: Version, value: Any) -> Any:
    """An input with the contents of its files; a path is refused, since it would name a file of the server."""
    fields: Mapping[str, Field] = version.task.inputs
    if isinstance(value, Mapping) and not fields.keys().isdisjoint(value):
        return {role: _content(fields[role], part) if role in fields else part for role, part in value.items()}
    if len(fields) == 1:
        return _content(next(iter(fields.values())), value)
    return value


def _content(field: Field, value: Any) -> Any:
    if not field.suffixes or (field.optional and value is None):
        return value
    kinds = ", ".join(field.suffixes)
    if not isinstance(value, Mapping) or value.keys() - {BASE64, "name"} or not isinstance(value.get(BASE64), str):
        raise BadInput(f'send the contents of a file ({kinds}) as {{"base64": "..."}}, or as multipart/form-data.')
    try:
        return base64.b64decode(value[BASE64], validate=True)
    except (binascii.Error, ValueError):
        raise BadInput("base64 is not valid.") from None
