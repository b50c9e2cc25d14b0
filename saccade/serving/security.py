"""Who may call a server, how much it accepts at once, and what its pages may load."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NamedTuple

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from saccade.interpretation.explorer.page import page_policy
from saccade.serving.batching import Full
from saccade.serving.settings import Settings

OPEN = ("/", "/health", "/ready", "/live.js", "/live.css", "/favicon.ico", "/docs", "/openapi.json")
"""Paths that need no token: the pages, which ask for one, and the health checks."""

ASSETS = "/static-offline-docs/"
"""The files of /docs, which need none either."""

HELD = 8
"""All bodies together may be this many times as large as one."""

CLOSE = {"connection": "close"}
"""Closes the connection instead of waiting for the rest of a rejected body."""

INLINE = "'self' 'unsafe-inline'"
DOCS = f"default-src 'none'; script-src {INLINE}; style-src {INLINE}; img-src 'self' data:; connect-src 'self'"
"""Swagger's page starts by an inline script. It shows what the server itself describes, and nothing of users."""

HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
]
PAGE = page_policy("'self'") + "; connect-src 'self'; frame-ancestors 'none'"
"""Of the live page, which embeds the explorer's."""
DOCS_HEADERS, PAGE_HEADERS = ([*HEADERS, (b"content-security-policy", each.encode())] for each in (DOCS, PAGE))

Given = dict[str, str]
"""The headers of a request; of several with one name, the first counts."""


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that listens there."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """Rejects requests that a server must not answer, or that would cost it too much.

    Requests without the token get 401, those that are too large 413, too slow 408, compressed 415, and those that name
    another host 421 or come from the page of another site 403. If the bodies of all requests together are too large,
    the next one gets 429.

    A page of another site can make a browser send requests to a loopback server under a name that it controls, so a
    server without a token only accepts this machine's names and its own pages.

    Args:
        app: what answers the others.
        settings: the limits.
        hosts: the names that a request may use for the server; None for all.
        busy: raises `Full` if no model can take an input now; a busy server must reject requests without reading them.
    """

    def __init__(
        self, app: ASGIApp, *, settings: Settings, hosts: frozenset[str] | None, busy: Callable[[], None]
    ) -> None:
        self.app, self.settings, self.hosts, self.busy = app, settings, hosts, busy
        self.held = 0
        """Bytes of all bodies that are being received or answered."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers: Given = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1"), value.decode("latin-1"))
        send = _with_headers(send, DOCS_HEADERS if scope["path"] == "/docs" else PAGE_HEADERS)
        problem = self._refused(scope["path"], headers)
        if problem is None and scope["method"] == "POST":
            try:
                self.busy()
            except Full as error:
                problem = Refusal(429, str(error), {"retry-after": str(error.seconds)})
        if problem is None:
            await self._bounded(scope, receive, send)
        else:
            await _refuse(send, problem)

    def _refused(self, path: str, headers: Given) -> Refusal | None:
        """Why a request is rejected because of its headers."""
        if self.hosts is not None:
            if _name(headers.get("host", "")) not in self.hosts:
                return Refusal(
                    421, "This server only answers requests to localhost: start it with --token to use other names."
                )
            origin = headers.get("origin")
            if origin and origin not in self.settings.origins and _name(origin.partition("://")[2]) not in self.hosts:
                return Refusal(403, "Pages of other sites may not call this server: see --allow-origin.")
        if self.settings.token is not None and not is_open(path) and not self._carries_token(headers):
            return Refusal(401, "Send the token: Authorization: Bearer TOKEN.", {"www-authenticate": "Bearer"})
        if headers.get("content-encoding", "identity").lower() != "identity":
            return Refusal(415, "Send the body as it is, without content-encoding.", CLOSE)
        if _length(headers) > self.settings.max_body:
            return self._too_large()
        return None

    def _too_large(self) -> Refusal:
        return Refusal(413, f"A request may have at most {self.settings.max_body:,} bytes.", CLOSE)

    def _carries_token(self, headers: Given) -> bool:
        assert self.settings.token is not None
        kind, _, given = headers.get("authorization", "").partition(" ")
        wanted = self.settings.token.strip()
        return kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), wanted.encode())

    async def _bounded(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request as long as its body stays within the limits."""
        received, complete, started = 0, False, False
        problem: Refusal | None = None
        until = asyncio.get_running_loop().time() + self.settings.deadline

        async def count() -> Message:
            nonlocal received, complete, problem
            if complete:
                return await receive()  # waits until the client has gone
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError:
                problem = Refusal(408, "The request did not arrive in time.", CLOSE)
                raise _RefusedError from None
            size = len(message.get("body", b""))
            received, self.held = received + size, self.held + size
            complete = not message.get("more_body", False)
            if received > self.settings.max_body:
                problem = self._too_large()
            elif self.held > HELD * self.settings.max_body:
                problem = Refusal(429, "Too many large requests are being answered: try again.", {"retry-after": "1"})
            if problem is not None:
                raise _RefusedError
            return message

        async def pass_on(message: Message) -> None:
            nonlocal started
            if problem is None:  # else whoever reads the body makes an error of its own of ours
                started = True
                await send(message)

        try:
            with suppress(_RefusedError):
                await self.app(scope, count, pass_on)
            if problem is not None and not started:
                await _refuse(send, problem)
        finally:
            self.held -= received


class Refusal(NamedTuple):
    """The response to a rejected request."""

    status: int
    detail: str
    headers: Mapping[str, str] = {}


class _RefusedError(Exception):
    """The body of a request broke a limit."""


def is_open(path: str) -> bool:
    """Whether a path needs no token."""
    return path in OPEN or path.startswith(ASSETS)


def _name(host: str) -> str:
    """A host without its port."""
    host = host.lower()
    return host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]


def _length(headers: Given) -> int:
    given = headers.get("content-length", "0")
    return int(given) if given.isdecimal() and len(given) < 20 else 2**63


def _with_headers(send: Send, own: list[tuple[bytes, bytes]]) -> Send:
    async def add(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = message.get("headers", ())
            given = {name.lower() for name, _ in headers}
            message["headers"] = [*headers, *(pair for pair in own if pair[0] not in given)]
        await send(message)

    return add


async def _refuse(send: Send, refusal: Refusal) -> None:
    content = json.dumps({"detail": refusal.detail}).encode()
    shown = {"content-type": "application/json", "content-length": str(len(content)), **refusal.headers}
    raw = [(name.encode(), value.encode()) for name, value in shown.items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": raw})
    await send({"type": "http.response.body", "body": content})
