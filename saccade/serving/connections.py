"""Connections to a server, with limits that uvicorn lacks."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from saccade.serving.batching import Gone

SECONDS = 10.0
"""How long the headers of a request may take to arrive, from the moment the connection is open."""

BYTES = 64 * 2**10
"""How large they may be."""

READING = 30.0
"""How long a client may leave its answer unread."""

MOST = 1000
"""How many connections may be open."""

LINGER = 5.0
"""How long a client that was answered early may continue to send."""


class Connection(HttpToolsProtocol):
    """A connection that is closed if its request takes too long or is too large.

    uvicorn waits forever for headers, however many arrive, and for clients that do not read their answers. Bodies have
    separate limits: see `Guard`. If the client disconnects, the jobs of its request, `scope["state"]["jobs"]`, are
    cancelled. This is only noticed while its connection is being read, which uvicorn stops doing in the middle of large
    bodies.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._timer: asyncio.TimerHandle | None = None
        self._reader: asyncio.TimerHandle | None = None
        self._unread = 0
        """Bytes since the last complete headers or part of a body."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._plain = transport
        self.transport = Lingering(transport, self)  # type: ignore[assignment]
        if len(self.connections) > MOST:
            self._refuse(503, b"Too many connections are open.")
        else:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        if self.cycle is not None and not self.cycle.response_complete:
            state = self.cycle.scope.setdefault("state", {})
            state["left"] = True  # what has not begun
            for job in state.get("jobs", ()):
                job.fail(Gone())
        if self._reader is not None:
            self._reader.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        self._reader = self.loop.call_later(READING, self._leave)
        super().pause_writing()

    def resume_writing(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._unread += len(data)
        super().data_received(data)
        if self._unread > BYTES:
            self._refuse(431, b"The headers are too large.")

    def on_message_begin(self) -> None:
        self._wait()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._stop()
        self._unread = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        if not self.pipeline:
            self.flow.resume_reading()

    def _wait(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(SECONDS, self._refuse, 408, b"The headers did not arrive in time.")

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _leave(self) -> None:
        """Drops a client that does not read; pending output is discarded."""
        if self.cycle is not None:
            self.cycle.disconnected = True
        self.transport.abort()

    def _refuse(self, status: int, detail: bytes) -> None:
        self._stop()
        if self.transport.is_closing():
            return
        content = b'{"detail":"' + detail + b'"}'
        head = b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(content)
        self.transport.write(STATUS_LINE[status] + head + content)
        self._plain.close()


class Lingering:
    """A transport that is closed once its client closes its side, or after a while.

    A client that is still sending would otherwise see a reset connection instead of the answer that its request is too
    large or the server too busy.
    """

    def __init__(self, transport: asyncio.Transport, connection: Connection) -> None:
        self._transport, self._connection, self._ending = transport, connection, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self._ending or self._transport.is_closing()

    def close(self) -> None:
        cycle = self._connection.cycle
        if self.is_closing() or cycle is None or not cycle.more_body or not self._transport.can_write_eof():
            self._transport.close()
            return
        self._ending = True
        self._transport.write_eof()
        self._transport.resume_reading()  # what comes is thrown away
        self._connection.loop.call_later(LINGER, self._transport.abort)
