"""A server as a process."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable

import uvicorn

from saccade.serving.batching import Unavailable


class Server(uvicorn.Server):
    """Starts the workers itself, so that the command can report why one cannot start.

    uvicorn would log a traceback of the application, and exit with its own code.

    Args:
        config: of uvicorn.
        start: starts the workers of the application.
    """

    def __init__(self, config: uvicorn.Config, *, start: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self._start = start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await self._start()
        except Unavailable as error:
            raise SystemExit(f"saccade serve: {error}") from None  # exits with 1
        await super().startup(sockets=sockets)
