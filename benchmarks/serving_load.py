"""The server beyond its limits: twice the load that it can bear, and workers that are killed."""

import asyncio
import contextlib
import os
import random
import signal
import statistics
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import Measurement
from benchmarks.serving_clients import Sent, Target, checked, get, load, ours, right_answers, send

KILLS = 20
GROWTH = 0.02
"""By how much memory may grow in the minute; what an allocator keeps varies by less."""


def cases() -> list[Any]:
    return [
        Overload("twice the load the server can bear, 60 s: p99 of accepted requests", "3x the p99 at half load", 1.0),
        Kills("a worker killed 20 times under load: requests answered, none wrong", "all of them", 1.0),
    ]


@dataclass(frozen=True)
class Overload:
    """Three times the p99 at half load, divided by the p99 of accepted requests at twice the load."""

    what: str
    against: str
    must: float | None = None
    aim: float | None = None
    seconds: float = 60.0

    def measure(self, repeats: int) -> Measurement:
        right = right_answers()
        with ours() as target:
            capacity = load(target)
            half = self._send(target, capacity / 2, 12.0, right)
            self._send(target, 2 * capacity, 20.0, right)  # memory is counted once every queue has been full
            memory = _megabytes(target.server)
            twice = self._send(target, 2 * capacity, self.seconds, right)
            grown = _megabytes(target.server) - memory
        refused = sum(each.status == 429 for each in twice)
        print(
            f"  capacity {capacity:.0f}/s; {len(twice):,} requests, {refused:,} refused; memory {memory:.0f} MB, "
            f"{grown:+.1f} MB after {self.seconds:.0f} s",
            file=sys.stderr,
        )
        if grown > GROWTH * memory:
            raise RuntimeError(f"Memory grew from {memory:.0f} MB by {grown:.0f} MB.")
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
        right = right_answers()
        with ours("--queue", "64") as target:
            texts = random.Random(3).choices(list(right), k=4000)
            sent = checked(asyncio.run(self._under_fire(target, texts)), right, {200, 429, 503})
            alive = target.server.poll() is None
        answered = sum(each.status > 0 for each in sent) if alive else 0
        print(f"  {dict(Counter(each.status for each in sent))}", file=sys.stderr)
        return Measurement(answered / len(sent), answered, len(sent), "requests")

    @staticmethod
    async def _under_fire(target: Target, texts: list[str]) -> list[Sent]:
        async def kill() -> None:
            for _ in range(KILLS):
                await asyncio.sleep(1.0)
                while await get(target.port, "/ready") != 200:
                    await asyncio.sleep(0.1)
                os.kill(random.choice(_children(target.server.pid)), signal.SIGKILL)

        killing = asyncio.create_task(kill())
        sent: list[Sent] = []
        while not killing.done():
            sent += await send(target, texts[len(sent) % len(texts) :][:200], 8)
        await killing
        return sent


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
