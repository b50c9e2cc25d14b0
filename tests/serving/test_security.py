"""Who may ask, and how."""

import asyncio
import gzip
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from saccade.serving.batching import Full
from saccade.serving.security import Guard, is_loopback
from saccade.serving.settings import Settings


async def echo(scope, receive, send) -> None:
    """Answers once the body is there."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def ask(guard: Guard, *, headers=(), body=(b"",), path="/predict", pause: float = 0.0) -> tuple[int, str]:
    """The status of an answer, and what it says."""

    async def run() -> tuple[int, str]:
        sent, parts = [], list(body)

        async def receive():
            await asyncio.sleep(pause)
            part = parts.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(parts)}

        async def send(message):
            sent.append(message)

        raw = [
            (name.encode(), value.encode("latin-1"))
            for name, value in {"host": "localhost:80", **dict(headers)}.items()
        ]
        await guard({"type": "http", "method": "POST", "path": path, "headers": raw}, receive, send)
        assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
        content = sent[1]["body"]
        return sent[0]["status"], json.loads(content)["detail"] if content else ""

    with ThreadPoolExecutor(1) as thread:  # a browser of other tests may leave a loop running in this one
        return thread.submit(asyncio.run, run()).result()


def guard(*, hosts=frozenset({"localhost", "[::1]"}), busy=lambda: None, **settings) -> Guard:
    return Guard(echo, settings=Settings(**settings), hosts=hosts, busy=busy)


def test_names_and_pages_of_others_are_refused_without_a_token() -> None:
    local = guard(origins=("https://page.example",))
    for origin in ("http://localhost:80", "http://[::1]:8000", "https://page.example"):
        assert ask(local, headers={"origin": origin})[0] == 200
    for origin in ("https://evil.example", "null", "http://localhost.evil.example", "http://127.0.0.1.evil.example"):
        assert ask(local, headers={"origin": origin}) == (
            403,
            "Pages of other sites may not call this server: see --allow-origin.",
        )
    for host in ("evil.example", "localhost.evil.example", "", "127.0.0.1@evil.example"):
        assert ask(local, headers={"host": host})[0] == 421


def test_a_busy_server_refuses_without_reading() -> None:
    def busy() -> None:
        raise Full(2.5)

    assert ask(guard(busy=busy), body=()) == (429, "Too many inputs are waiting: try again in 3 s.")


def test_compressed_bodies_are_refused() -> None:
    bomb = gzip.compress(b" " * 10**6)
    status, detail = ask(guard(), headers={"content-encoding": "gzip"}, body=[bomb])
    assert (status, detail) == (415, "Send the body as it is, without content-encoding.")
    assert ask(guard(), headers={"content-encoding": "identity"})[0] == 200


def test_a_body_must_arrive_in_time() -> None:
    slow = guard(deadline=0.1)
    assert ask(slow, body=[b"a"] * 50, pause=0.02) == (408, "The request did not arrive in time.")
    assert slow.held == 0


def test_all_bodies_together_have_a_limit() -> None:
    several = guard(max_body=100)
    several.held = 790
    assert ask(several, body=[b"a" * 20]) == (429, "Too many large requests are being answered: try again.")
    assert ask(several, body=[b"a" * 10])[0] == 200
    assert several.held == 790


@pytest.mark.parametrize("length", ["101", "-1", "1e9", "9" * 400, "²", "0x1"])
def test_strange_and_large_lengths(length) -> None:
    assert ask(guard(max_body=100), headers={"content-length": length})[0] == 413


def test_tokens_are_sent_in_a_header() -> None:
    for token in ("wörter in der Kette", "two lines of letters\nof it"):
        with pytest.raises(ValueError, match="printable ASCII"):
            Settings(token=token)
    closed = guard(token="a token of many letters ", hosts=None)
    good = {"authorization": "bearer  a token of many letters"}
    assert ask(closed, headers=good)[0] == 200
    assert ask(closed)[0] == 401
    for path in ("/docs", "/openapi.json", "/static-offline-docs/swagger-ui.css", "/ready"):
        assert ask(closed, path=path)[0] == 200
    for path in ("/info", "/metrics", "/static-offline-docs", "//docs", "/docs/../info"):
        assert ask(closed, path=path)[0] == 401


def test_loopback() -> None:
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "127.8.8.8", "::1")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "example.org", "127.0.0.1.example.org", "")))
