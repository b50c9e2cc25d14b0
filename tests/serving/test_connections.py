"""Connections that ask for nothing, for too much, or do not listen."""

import asyncio
import contextlib
import socket
import threading
import time

import pytest

pytest.importorskip("fastapi_offline", reason="needs the extra serve")

import uvicorn

from saccade.serving import connections
from saccade.serving.batching import Gone, Job
from saccade.serving.connections import Connection

waiting: list[Job] = []
"""Jobs of requests that wait for an answer."""

LARGE = 2**27
"""More bytes than the buffers of two sockets hold."""


async def application(scope, receive, send) -> None:
    """Reads the body, then answers with its size, or with many bytes, or waits for a job that nobody does.

    At /early, it answers without having read.
    """
    size, more = 0, scope["path"] != "/early"
    while more:
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    if scope["path"] == "/job":
        job = Job("predict", None, None, 1, 0.0, asyncio.get_running_loop().create_future())
        scope["state"] = {"jobs": [job]}
        waiting.append(job)
        with contextlib.suppress(Gone):
            await job.answer
        waiting.remove(job)
    content = b"." * LARGE if scope["path"] == "/large" else str(size).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-size", str(len(content)).encode())]})
    await send({"type": "http.response.body", "body": content})


@pytest.fixture(scope="module")
def server():
    """One of uvicorn, in a thread, with limits that a test can reach."""
    patch = pytest.MonkeyPatch()
    for name, value in {"SECONDS": 0.4, "READING": 0.4, "MOST": 5}.items():
        patch.setattr(connections, name, value)
    config = uvicorn.Config(
        application, port=0, http=Connection, ws="none", lifespan="off", log_config=None, timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield server
    server.should_exit = True
    thread.join()
    patch.undo()


@pytest.fixture
def opened(server):
    with contextlib.ExitStack() as several:
        address = server.servers[0].sockets[0].getsockname()
        yield lambda: several.enter_context(socket.create_connection(address, timeout=10))


def everything(connection: socket.socket) -> bytes:
    """What is sent until the connection closes."""
    parts = []
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(2**16):
            parts.append(part)
    return b"".join(parts)


def test_ordinary_requests_share_a_connection(opened) -> None:
    connection = opened()
    for size in (3, 300_000):
        connection.sendall(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % size + b"." * size)
        answer = b""
        while not answer.endswith(b"%d\r\n0\r\n\r\n" % size):
            answer += connection.recv(2**16)
        assert answer.startswith(b"HTTP/1.1 200")


def test_headers_must_arrive_in_time(opened) -> None:
    silent, slow = opened(), opened()
    slow.sendall(b"GET / HTTP/1.1\r\nhost: a\r\n")
    for connection in (silent, slow):
        assert everything(connection).startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize(
    "start",
    [
        b"GET /",
        b"GET / HTTP/1.1\r\nx: ",
        b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx: ",
        b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3;",
    ],
    ids=["path", "header", "trailer", "chunk"],
)
def test_headers_have_an_end(opened, start) -> None:
    connection = opened()
    connection.sendall(start)
    sent = 0
    with contextlib.suppress(ConnectionError):
        while sent < 20 * connections.BYTES:
            connection.sendall(b"a" * 2**14)
            sent += 2**14
            time.sleep(0.001)
    assert sent < 20 * connections.BYTES


def test_many_headers_are_refused(opened) -> None:
    connection = opened()
    with contextlib.suppress(ConnectionError):
        connection.sendall(b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 40_000)
    assert everything(connection).startswith(b"HTTP/1.1 431")


def test_connections_have_a_limit(opened) -> None:
    several = [opened() for _ in range(6)]
    answers = [everything(each) for each in several]
    assert [answer[:12] for answer in answers] == [b"HTTP/1.1 408"] * 5 + [b"HTTP/1.1 503"]


@pytest.mark.parametrize("size", [0, 3_000_000])
def test_jobs_end_when_their_client_leaves(opened, size) -> None:
    connection = opened()
    connection.sendall(b"POST /job HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % size + b"." * size)
    for wanted in (1, 0):
        until = time.monotonic() + 10
        while len(waiting) != wanted and time.monotonic() < until:
            time.sleep(0.005)
        assert len(waiting) == wanted
        connection.close()


def test_an_early_answer_reaches_a_client_that_is_still_sending(opened) -> None:
    connection = opened()
    head = b"POST /early HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 30000000\r\n\r\n"
    connection.sendall(head + b"." * 30_000_000)
    assert everything(connection).startswith(b"HTTP/1.1 200")


def test_a_client_that_goes_on_sending_is_left(opened, server, monkeypatch) -> None:
    monkeypatch.setattr(connections, "LINGER", 0.3)
    connection = opened()
    connection.sendall(b"POST /early HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 3\r\n\r\n.")
    assert everything(connection).startswith(b"HTTP/1.1 200")
    until = time.monotonic() + 10
    while server.server_state.connections and time.monotonic() < until:
        time.sleep(0.005)
    assert not server.server_state.connections


def test_a_client_that_does_not_read_is_left(opened, server) -> None:
    connection = opened()
    connection.sendall(b"GET /large HTTP/1.1\r\nhost: a\r\n\r\n")
    for wanted in (1, 0):  # it is accepted, then left
        until = time.monotonic() + 10
        while len(server.server_state.connections) != wanted and time.monotonic() < until:
            time.sleep(0.005)
        assert len(server.server_state.connections) == wanted
    assert len(everything(connection)) < LARGE
