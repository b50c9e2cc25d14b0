"""Inputs as they arrive over HTTP."""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from saccade.fields import Field
from saccade.serving.batching import Gone, Unavailable
from saccade.serving.version import BadInput, Version
from saccade.tasks import Example

BASE64 = "base64"

NAME = 200
"""How many characters of a file's name are kept."""


class Upload:
    """The contents of a file, as a client sent it.

    Args:
        content: its bytes.
        name: the client's name for it, if given.
    """

    def __init__(self, content: bytes, name: Any = None) -> None:
        self.content, self.name = content, name[:NAME] if isinstance(name, str) else ""

    def __repr__(self) -> str:
        return f"<file {self.name!r} of {len(self.content):,} bytes>"

    def raw(self) -> Any:
        """What a field reads: a name is kept for the answer, and never opened."""
        return {"bytes": self.content, "path": self.name} if self.name else self.content


def read_inputs(
    version: Version, inputs: Sequence[Any], *, where: str, until: float, left: Callable[[], bool] = lambda: False
) -> list[tuple[Example, int]]:
    """The examples for the inputs, with their costs.

    `BadInput` names the first that cannot be used. Once the deadline has passed or the client has disconnected, no more
    are read: a request may have many pictures or recordings, which take long to decode.

    Args:
        version: of the model.
        inputs: JSON values, or uploaded files.
        where: the field that an input is in, `{}` for its number from 0: "inputs[{}]".
        until: on the monotonic clock.
        left: whether nobody is waiting for the answer any more.
    """
    found = []
    for number, value in enumerate(inputs):
        if left():
            raise Gone
        if time.monotonic() > until:
            raise Unavailable("The inputs took too long to read: send fewer at a time.")
        try:
            (example,) = version.read([_decoded(version, value)], start=number + 1)
        except (TypeError, ValueError, OverflowError) as error:
            raise BadInput(f"{where.format(number)}: {plain(error)}") from None
        found.append((example, cost(version, example)))
    return found


def cost(version: Version, example: Example) -> int:
    """The positions of an example; a model may read fewer."""
    return max(1, version.task.length(example))


def plain(error: Exception) -> str:
    """An error about an input without the file and line that stand for the place of data in memory."""
    problem = getattr(error, "problem", None)
    return str(error) if problem is None else f"{problem}."


def _decoded(version: Version, value: Any) -> Any:
    """An input with the contents of its files; paths are rejected, since they would name files on the server."""
    fields: Mapping[str, Field] = version.task.inputs
    if isinstance(value, Mapping) and not fields.keys().isdisjoint(value):
        return {role: _content(fields[role], part) if role in fields else part for role, part in value.items()}
    if len(fields) == 1:
        return _content(next(iter(fields.values())), value)
    return value


def _content(field: Field, value: Any) -> Any:
    if isinstance(value, Upload):
        return value.raw()
    if not field.suffixes or (field.optional and value is None):
        return value
    kinds = ", ".join(field.suffixes)
    if not isinstance(value, Mapping) or value.keys() - {BASE64, "name"} or not isinstance(value.get(BASE64), str):
        raise BadInput(f'send the contents of a file ({kinds}) as {{"base64": "..."}}, or as multipart/form-data.')
    try:
        return Upload(base64.b64decode(value[BASE64], validate=True), value.get("name")).raw()
    except (binascii.Error, ValueError):
        raise BadInput("base64 is not valid.") from None
