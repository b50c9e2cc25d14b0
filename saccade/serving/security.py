"""Who may ask a server, how much at once, and what its pages may load."""

from __future__ import annotations

import hmac
import ipaddress
import json
from contextlib import suppress
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from saccade.interpretation.explorer.page import page_policy

OPEN = ("/", "/health", "/ready", "/live.js", "/live.css", "/favicon.ico")
"""What needs no token: the page, which asks for one, and what tells whether the server is up."""

INLINE = "'self' 'unsafe-inline'"
DOCS = f"default-src 'none'; script-src {INLINE}; style-src {INLINE}; img-src data:; connect-src 'self'"
"""Swagger's page starts by an inline script. It shows what the server itself describes, and nothing of users."""

HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
}


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that listens there."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """Refuses requests without the token (401), that are too large (413), or that name another host (421).

    A page of another site can make a browser send requests to a server on loopback under a name that it controls: so a
    server that has no token answers only to the names of this machine.

    Args:
        app: what answers the others.
        token: what requests must carry, if anything.
        hosts: the names that a request may use for the server; None for all.
        max_body: the most bytes of a request.
    """

    def __init__(self, app: ASGIApp, *, token: str | None, hosts: frozenset[str] | None, max_body: int) -> None:
        self.app, self.token, self.hosts, self.max_body = app, token, hosts, max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        send = _with_headers(send, scope["path"])
        if self.hosts is not None and _host(headers) not in self.hosts:
            await _refuse(send, 421, "This server answers to localhost only: start it with --token for other names.")
        elif self.token is not None and scope["path"] not in OPEN and not self._carries_token(headers):
            await _refuse(send, 401, "Send the token: Authorization: Bearer TOKEN.", {"www-authenticate": "Bearer"})
        elif _length(headers) > self.max_body:
            await _refuse(send, 413, f"A request may have {self.max_body:,} bytes.")
        else:
            await self._bounded(scope, receive, send)

    def _carries_token(self, headers: Headers) -> bool:
        assert self.token is not None
        kind, _, given = headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), self.token.encode())

    async def _bounded(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Counts the bytes of a request that does not say how many it has."""
        received, started = 0, False

        async def count() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self.max_body:
                raise _TooLargeError
            return message

        async def note(message: Message) -> None:
            nonlocal started
            if received <= self.max_body:  # else whoever reads the body makes an error of its own of ours
                started = True
                await send(message)

        with suppress(_TooLargeError):
            await self.app(scope, count, note)
        if received > self.max_body and not started:
            await _refuse(send, 413, f"A request may have {self.max_body:,} bytes.")


class _TooLargeError(Exception):
    """More bytes came than a request may have."""


def _host(headers: Headers) -> str:
    name = headers.get("host", "").lower()
    return name.partition("]")[0] + "]" if name.startswith("[") else name.partition(":")[0]


def _length(headers: Headers) -> int:
    given = headers.get("content-length", "0")
    return int(given) if given.isdecimal() and len(given) < 20 else 2**63


def _with_headers(send: Send, path: str) -> Send:
    own = page_policy("'self'")  # with the explorer's page, which the live page embeds
    policy = DOCS if path == "/docs" else f"{own}; connect-src 'self'; frame-ancestors 'none'"

    async def add(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("content-security-policy", policy)
        await send(message)

    return add


async def _refuse(send: Send, status: int, detail: str, headers: dict[str, Any] | None = None) -> None:
    content = json.dumps({"detail": detail}).encode()
    shown = {"content-type": "application/json", "content-length": str(len(content)), **(headers or {})}
    raw = [(name.encode(), value.encode()) for name, value in shown.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": content})
