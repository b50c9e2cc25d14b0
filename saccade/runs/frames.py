"""Messages between a server and its workers, over pipes: a length, then a pickle of our own making."""

from __future__ import annotations

import asyncio
import pickle
from typing import IO, Any


def pack(message: Any) -> bytes:
    """A message as bytes."""
    content = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return len(content).to_bytes(8, "big") + content


def read(source: IO[bytes]) -> Any:
    """The next message of a blocking stream; None at its end."""
    size = source.read(8)
    return pickle.loads(source.read(int.from_bytes(size, "big"))) if len(size) == 8 else None


async def read_async(source: asyncio.StreamReader) -> Any:
    """The next message; raises `asyncio.IncompleteReadError` at the end."""
    size = int.from_bytes(await source.readexactly(8), "big")
    return pickle.loads(await source.readexactly(size))
