"""What a server notes of each request."""

from __future__ import annotations

import json
import logging
import re
import secrets
import time
from functools import cache
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from saccade.serving.metrics import Metrics
from saccade.serving.version import Mistake
from saccade.serving.worker import place_of

log = logging.getLogger("saccade.serving")

REQUEST_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)


class Observed:
    """Gives each request an id, counts it, and logs it; internal errors are answered without details.

    Args:
        app: what answers.
        metrics: what counts.
        log_inputs: whether inputs are written to the log.
    """

    def __init__(self, app: ASGIApp, *, metrics: Metrics, log_inputs: bool) -> None:
        self.app, self.metrics, self.log_inputs = app, metrics, log_inputs
        self._count = cache(metrics.requests.labels)
        self._time = cache(metrics.latency.labels)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"").decode("latin-1")
        number = given if REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        started, status = time.monotonic(), 0

        async def note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", number.encode())]
            await send(message)

        scope["state"] = {"left": False, **scope.get("state", {}), "request": number, "model": "", "inputs": []}
        try:
            await self.app(scope, receive, note)
        except Exception as error:
            mistake = error if isinstance(error, Mistake) else Mistake(place_of(error))
            mistake.log(number)
            if not status:
                await _sorry(note, number)
        finally:
            self._note(scope, number, status, time.monotonic() - started)

    def _note(self, scope: Scope, number: str, status: int, seconds: float) -> None:
        path = getattr(scope.get("route"), "path", "other")  # never what the client wrote: labels must be few
        model, inputs = scope["state"]["model"], scope["state"]["inputs"]
        self._count(model, path, status).inc()
        self._time(model, path).observe(seconds)
        extra: dict[str, Any] = {"request": number, "method": scope["method"], "path": path, "status": status}
        extra |= {"ms": round(1e3 * seconds, 2), "model": model, "inputs": len(inputs)}
        if self.log_inputs:
            extra["given"] = [value if isinstance(value, str) else repr(value)[:200] for value in inputs]
        if log.isEnabledFor(logging.INFO):  # without looking for the caller, which `log.info` does
            log.handle(log.makeRecord(log.name, logging.INFO, __file__, 0, "request", (), None, extra=extra))


async def _sorry(send: Send, number: str) -> None:
    content = json.dumps({"detail": "Internal server error.", "request": number}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": 500, "headers": headers})
    await send({"type": "http.response.body", "body": content})
