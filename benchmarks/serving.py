"""The server under load: 32 clients that send one date each, again and again, to an RNNsearch with a beam of 5.

The clients are one process of this module, and share the two cores with the server. All sides serve the same run with
two workers, and are timed in turn. Peers call `run.predict` from their own batching, with batches of up to 64 inputs
and the waiting time of our default.
"""

import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.harness import Measurement

CLIENTS, REQUESTS, WORKERS = 32, 600, 2
STEPS = 150


def cases() -> list[Any]:
    what = f"requests a second, {CLIENTS} clients, one date each, RNNsearch"
    return [
        Rate(what, "the same server without batching", lambda: ours("--batch-cost", "1", "--wait-ms", "0"), 3, 5),
        Rate(what, "LitServe with its batching", lambda: peer("litserve"), 1.2, 2),
        Rate(what, "BentoML with its batching", lambda: peer("bentoml"), 1.2, 2),
        Latency("milliseconds that the server adds to one idle request", "run.predict in process: + 5 ms", 1.0, 2.5),
        Overload("twice the load the server can bear, 60 s: p99 of accepted requests", "3x the p99 at half load", 1.0),
        Kills("a worker killed 20 times under load: requests answered, none wrong", "all of them", 1.0),
    ]


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


async def send(target: Target, texts: list[str], clients: int, rate: float | None = None) -> list[Sent]:
    """All texts, by so many clients, one after the other or, with a rate, so many a second whatever happens."""
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


def load(target: Target, count: int = REQUESTS, clients: int = CLIENTS) -> float:
    """Requests a second."""
    texts = random.Random(1).choices(dates(), k=count)
    started_at = time.perf_counter()
    sent = asyncio.run(send(target, texts, clients))
    seconds = time.perf_counter() - started_at
    wrong = Counter(each.status for each in sent if each.status != 200)
    if wrong:
        raise RuntimeError(f"Requests failed: {dict(wrong)}")
    return count / seconds


@dataclass(frozen=True)
class Rate:
    """How many times more requests a second our server answers."""

    what: str
    against: str
    other: Callable[[], Any]
    must: float | None = None
    aim: float | None = None

    def measure(self, repeats: int) -> Measurement:
        with ours("--queue", "64") as mine, self.other() as theirs:
            for target in (mine, theirs):
                load(target, 100)
            rates = [(load(mine), load(theirs)) for _ in range(max(1, min(repeats, 5)))]
        our, their = (statistics.median(side) for side in zip(*rates, strict=True))
        return Measurement(our / their, our, their, "requests/s")


@dataclass(frozen=True)
class Latency:
    """5 ms, divided by what the server adds to a prediction."""

    what: str
    against: str
    must: float | None = None
    aim: float | None = None

    def measure(self, repeats: int) -> Measurement:
        import torch

        import saccade

        run = saccade.load(run_folder())
        texts = dates()[:40]
        before = torch.get_num_threads()
        torch.set_num_threads(1)  # as a worker has
        try:
            with ours() as target:
                inside, outside = [], []
                for text in [*texts[:5], *texts]:
                    start = time.perf_counter()
                    run.predict([text])
                    inside.append(time.perf_counter() - start)
                    outside.append(asyncio.run(send(target, [text], 1))[0].seconds)
        finally:
            torch.set_num_threads(before)
        added = 1e3 * statistics.median(a - b for a, b in zip(outside[5:], inside[5:], strict=True))
        return Measurement(5.0 / max(added, 0.01), added, 5.0, "ms")


@dataclass(frozen=True)
class Overload:
    """Three times the p99 at half load, divided by the p99 of accepted requests at twice the load."""

    what: str
    against: str
    must: float | None = None
    aim: float | None = None
    seconds: float = 60.0

    def measure(self, repeats: int) -> Measurement:
        right = _right_answers()
        with ours() as target:
            capacity = load(target)
            half = self._send(target, capacity / 2, 20.0, right)
            memory = _megabytes(target.server)
            twice = self._send(target, 2 * capacity, self.seconds, right)
            grown = _megabytes(target.server) - memory
        refused = sum(each.status == 429 for each in twice)
        print(f"  {len(twice):,} requests, {refused:,} refused with 429, memory {grown:+.0f} MB", file=sys.stderr)
        ours_p99, theirs = _p99(twice), 3.0 * _p99(half)
        return Measurement(theirs / ours_p99, 1e3 * ours_p99, 1e3 * theirs, "ms")

    @staticmethod
    def _send(target: Target, rate: float, seconds: float, right: dict[str, str]) -> list[Sent]:
        texts = random.Random(2).choices(list(right), k=int(rate * seconds))
        return checked(asyncio.run(send(target, texts, 512, rate)), right, {200, 429})


@dataclass(frozen=True)
class Kills:
    """The share of requests that were answered while workers were killed."""

    what: str
    against: str
    must: float | None = None
    aim: float | None = None

    def measure(self, repeats: int) -> Measurement:
        right = _right_answers()
        with ours("--queue", "64") as target:
            texts = random.Random(3).choices(list(right), k=4000)
            sent = checked(asyncio.run(self._under_fire(target, texts)), right, {200, 429, 503})
            alive = target.server.poll() is None
        answered = sum(each.status > 0 for each in sent) if alive else 0
        print(f"  {dict(Counter(each.status for each in sent))}", file=sys.stderr)
        return Measurement(answered / len(texts), answered, len(texts), "requests")

    @staticmethod
    async def _under_fire(target: Target, texts: list[str]) -> list[Sent]:
        async def kill() -> None:
            for _ in range(20):
                await asyncio.sleep(1.0)
                workers = _children(target.server.pid)
                if workers:
                    os.kill(random.choice(workers), signal.SIGKILL)

        killing = asyncio.create_task(kill())
        sent: list[Sent] = []
        while not killing.done() or not sent:
            sent += await send(target, texts[len(sent) % len(texts) :][:200], 8)
        await killing
        return sent


def checked(sent: list[Sent], right: dict[str, str], allowed: set[int]) -> list[Sent]:
    """The requests, of which none may have a wrong answer or another status."""
    strange = Counter(each.status for each in sent if each.status not in allowed)
    wrong = [each for each in sent if each.status == 200 and each.answer != right[each.text]]
    if strange or wrong:
        raise RuntimeError(f"Other statuses: {dict(strange)}; wrong answers: {wrong[:2]}")
    return sent


@cache
def _right_answers() -> dict[str, str]:
    import saccade

    texts = dates()[:200]
    return dict(zip(texts, (a.text for a in saccade.load(run_folder()).predict(texts)), strict=True))


def _p99(sent: list[Sent]) -> float:
    return statistics.quantiles([each.seconds for each in sent if each.status == 200], n=100)[98]


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _megabytes(server: subprocess.Popen[bytes]) -> float:
    """The memory of the server and its workers."""
    total = 0
    for pid in (server.pid, *_children(server.pid)):
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{pid}/status").read_text()
            total += int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])
    return total / 1024
