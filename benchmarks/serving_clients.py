"""Servers and clients for the benchmarks of serving.

All sides serve the same run with two workers, on loopback. The clients are one process, and share the two cores with
the server.
"""

import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from saccade.serving.pauses import spare_collector

CLIENTS, WORKERS = 32, 2
SECONDS = 4.0
STEPS = 150


@cache
def run_folder() -> str:
    """A short training: its answers need not be right, only as long as real ones."""
    import saccade

    folder = Path(tempfile.mkdtemp(prefix="saccade-bench-")) / "dates"
    data = {"train": "dates:train:5000", "valid": "dates:valid:50"}
    saccade.train("dates/rnnsearch", data=data, trainer={"max_steps": STEPS}, output=folder)
    return str(folder)


@cache
def dates() -> list[str]:
    from saccade.data.dates import generate

    return [date.source for date in generate(500, split="test")]


@contextlib.contextmanager
def started(command: list[str], port: int, path: str = "/ready") -> Iterator[subprocess.Popen[bytes]]:
    """A server in a process of its own, once it is ready."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "BENTOML_DO_NOT_TRACK": "1"}
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)
        try:
            for _ in range(600):
                if server.poll() is not None:
                    break
                with contextlib.suppress(OSError):
                    if asyncio.run(get(port, path)) == 200:
                        yield server
                        return
                time.sleep(0.2)
            log.seek(0)
            raise RuntimeError(f"{command[2:4]} did not start: {log.read()[-500:]!r}")
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            try:
                server.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, signal.SIGKILL)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextlib.contextmanager
def ours(*options: str) -> Iterator["Target"]:
    port = free_port()
    command = [sys.executable, "-m", "saccade", "serve", f"dates={run_folder()}", "--port", str(port)]
    with started([*command, "--workers", str(WORKERS), *options], port) as server:
        yield Target(port, "/predict", lambda text: {"inputs": [text]}, lambda a: a["predictions"][0]["answer"], server)


@contextlib.contextmanager
def peer(name: str) -> Iterator["Target"]:
    __import__(name)  # ImportError skips the row
    port = free_port()
    command = [sys.executable, "-m", f"benchmarks.serving_{name}", run_folder(), str(port)]
    with started(command, port, "/health" if name == "litserve" else "/readyz") as server:
        if name == "litserve":
            yield Target(port, "/predict", lambda text: {"input": text}, lambda a: a["output"], server)
        else:
            yield Target(port, "/predict", lambda text: {"inputs": [text]}, lambda a: a[0], server)


@dataclass
class Target:
    """A server that listens on loopback."""

    port: int
    path: str
    body: Callable[[str], dict[str, Any]]
    answer: Callable[[Any], str]
    server: subprocess.Popen[bytes]


async def get(port: int, path: str) -> int:
    return (await exchange(*await asyncio.open_connection("127.0.0.1", port), path, None))[0]


async def exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, body: bytes | None
) -> tuple[int, bytes]:
    """One request over a connection that stays open."""
    head = f"{'GET' if body is None else 'POST'} {path} HTTP/1.1\r\nHost: localhost\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body or b'')}\r\n\r\n"
    writer.write(head.encode() + (body or b""))
    await writer.drain()
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
    if headers.get("transfer-encoding") == "chunked":
        content = b""
        while size := int(await reader.readline(), 16):
            content += await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readexactly(2)
    else:
        content = await reader.readexactly(int(headers.get("content-length", 0)))
    return int(lines[0].split()[1]), content


@dataclass
class Sent:
    """A request that was answered."""

    text: str
    status: int
    answer: str
    seconds: float


async def send(target: Target, texts: Iterable[str], clients: int, rate: float | None = None) -> list[Sent]:
    """All texts, by so many clients, one after the other or, with a rate, so many a second whatever happens."""
    spare_collector()  # a pause of the client would count as the server's
    found: list[Sent] = []
    waiting = iter(enumerate(texts))
    begin = time.perf_counter()

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
        for number, text in waiting:
            if rate is not None:
                await asyncio.sleep(max(0.0, begin + number / rate - time.perf_counter()))
            start = time.perf_counter()
            try:
                status, content = await exchange(reader, writer, target.path, json.dumps(target.body(text)).encode())
            except (ConnectionError, asyncio.IncompleteReadError):
                status, content = 0, b""
                reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
            answer = target.answer(json.loads(content)) if status == 200 else ""
            found.append(Sent(text, status, answer, time.perf_counter() - start))
        writer.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    return found


def load(target: Target, seconds: float = SECONDS, clients: int = CLIENTS) -> float:
    """Requests a second, by clients that each send one after the other for a while."""
    draw, begin = random.Random(1), time.perf_counter()

    def texts() -> Iterator[str]:
        while time.perf_counter() - begin < seconds:
            yield draw.choice(dates())

    sent = asyncio.run(send(target, texts(), clients))
    wrong = Counter(each.status for each in sent if each.status != 200)
    if wrong:
        raise RuntimeError(f"Requests failed: {dict(wrong)}")
    return len(sent) / (time.perf_counter() - begin)


def checked(sent: list[Sent], right: dict[str, str], allowed: set[int]) -> list[Sent]:
    """The requests, of which none may have a wrong answer or another status."""
    strange = Counter(each.status for each in sent if each.status not in allowed)
    wrong = [each for each in sent if each.status == 200 and each.answer != right[each.text]]
    if strange or wrong:
        raise RuntimeError(f"Other statuses: {dict(strange)}; wrong answers: {wrong[:2]}")
    return sent


@cache
def right_answers() -> dict[str, str]:
    import saccade

    texts = dates()[:200]
    return dict(zip(texts, (a.text for a in saccade.load(run_folder()).predict(texts)), strict=True))
