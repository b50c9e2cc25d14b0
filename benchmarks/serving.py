"""The server under load: 32 clients that send one date each, again and again, to an RNNsearch with a beam of 5.

Both sides are timed in turn, each with the other one stopped.
"""

import asyncio
import os
import signal
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.harness import Measurement
from benchmarks.serving_clients import CLIENTS, Target, dates, load, ours, run_folder, send

WHAT = f"requests a second, {CLIENTS} clients, one date each, RNNsearch"


def cases() -> list[Any]:
    return [
        Rate(WHAT, "the same server without batching", lambda: ours("--batch-cost", "1", "--wait-ms", "0"), 3, 5),
        Latency("milliseconds that the server adds to one idle request", "run.predict in process: + 5 ms", 1.0, 2.5),
    ]


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
                load(target, 2.0)
            rates = [(alone(mine, theirs), alone(theirs, mine)) for _ in range(max(1, min(repeats, 5)))]
        our, their = (statistics.median(side) for side in zip(*rates, strict=True))
        return Measurement(our / their, our, their, "requests/s")


def alone(target: Target, other: Target) -> float:
    """Requests a second while the other server is stopped: some are busy even without requests."""
    os.killpg(other.server.pid, signal.SIGSTOP)
    try:
        return load(target)
    finally:
        os.killpg(other.server.pid, signal.SIGCONT)


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
