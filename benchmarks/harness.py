"""The rows of the table, and how they are measured.

Times vary by tens of per cent from minute to minute, so both sides are timed alternately in the same process, and each
time is compared with the one of the other side next to it: the row is the median of these ratios. Where that depends on
the process, it is the median of several. Memory is measured in a fresh process for each side: how much a call adds to
the peak after a first call has warmed up the libraries.
"""

import importlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

Build = Callable[[], tuple[Callable[[], object], Callable[[], object]]]
"""Builds the inputs and returns (ours, peer), both called without arguments; ImportError if the peer is missing."""

MIN_SECONDS = 0.02
"""Calls are timed in groups that take at least this long."""

LONG, LONG_REPEATS = 2.0, 3
"""If a call takes so many seconds, one warms up and so many are timed."""


@dataclass(frozen=True)
class Measurement:
    """The results of both sides, in `unit`, and how many times better ours is."""

    ratio: float
    ours: float
    peer: float
    unit: str


@dataclass(frozen=True)
class Timing:
    """How many times faster ours is.

    Args:
        what, against: the two columns of the table.
        build: see `Build`; for several processes, a function of a module in this package.
        must, aim: the ratios to reach, if any.
        processes: measure in so many fresh processes, and take the median of their ratios; 0 for this process.
    """

    what: str
    against: str
    build: Build
    must: float | None = None
    aim: float | None = None
    processes: int = 0

    def measure(self, repeats: int) -> Measurement:
        if not self.processes:
            return self._measure_here(repeats)
        found = [in_fresh_process(self.build, "times", repeats) for _ in range(self.processes)]
        ratio, ours, peer = (statistics.median(each) for each in zip(*found, strict=True))
        return Measurement(ratio, ours, peer, "ms")

    def _measure_here(self, repeats: int) -> Measurement:
        sides = self.build()
        first = [_seconds(side, 1) for side in sides]
        long = max(first) > LONG
        groups = [1 if long else _group_size(side) for side in sides]
        seconds: tuple[list[float], list[float]] = ([], [])
        for _ in range(min(repeats, LONG_REPEATS) if long else repeats):
            for side, group, taken in zip(sides, groups, seconds, strict=True):
                taken.append(_seconds(side, group))
        ours, peer = (statistics.median(taken) for taken in seconds)
        ratio = statistics.median(peer / ours for ours, peer in zip(*seconds, strict=True))
        return Measurement(ratio, ours * 1e3, peer * 1e3, "ms")


@dataclass(frozen=True)
class Memory:
    """How many times less memory ours adds to the peak.

    Args:
        what, against: the two columns of the table.
        build: see `Build`; must be a function of a module in this package, so that another process can find it.
        must, aim: the ratios to reach, if any.
    """

    what: str
    against: str
    build: Build
    must: float | None = None
    aim: float | None = None

    def measure(self, repeats: int) -> Measurement:
        ours, peer = (extra_megabytes(self.build, side) for side in (0, 1))
        return Measurement(peer / ours, ours, peer, "MB")


def extra_megabytes(build: Build, side: int) -> float:
    """How much a call of one side adds to the peak memory of a fresh process."""
    # Return freed blocks to the system immediately: otherwise the allocator's reserves, which vary, are counted.
    return in_fresh_process(build, "memory", side, MALLOC_MMAP_THRESHOLD_="65536")[0]


def in_fresh_process(build: Build, what: str, number: int, **environment: str) -> list[float]:
    """What another process measures: the "times" of both sides (ratio, ours, peer), or the "memory" of one side.

    The number says how often to time, or which side to measure.
    """
    place = f"{build.__module__}:{build.__qualname__}"
    command = [sys.executable, "-m", "benchmarks.harness", place, what, str(number)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode:
        problem = (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1]
        raise (ImportError if "ModuleNotFoundError" in problem else RuntimeError)(problem)
    return [float(each) for each in done.stdout.splitlines()[-1].split()]


def _seconds(function: Callable[[], object], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls


def _group_size(function: Callable[[], object]) -> int:
    """How many calls take MIN_SECONDS, once it has been called before."""
    return max(1, round(MIN_SECONDS / min(_seconds(function, 1) for _ in range(3))))


def forward_backward(
    function: Callable[..., torch.Tensor], *inputs: torch.Tensor, parameters: list[torch.Tensor] | None = None
) -> Callable[[], None]:
    """A call of `function(*inputs)` and of its gradients along a fixed direction."""
    wanted = [tensor for tensor in (*inputs, *(parameters or [])) if tensor.requires_grad]
    with torch.no_grad():
        direction = torch.randn_like(function(*inputs))

    def run() -> None:
        torch.autograd.grad(function(*inputs), wanted, direction)

    return run


def _peak_kilobytes() -> int:
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


def _build(place: str) -> Build:
    module, name = place.split(":")
    build: Build = getattr(importlib.import_module(module), name)
    return build


def _added_megabytes(build: Build, side: int) -> float:
    function = build()[side]
    function()
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak to the current usage
    before = _peak_kilobytes()
    function()
    return max(_peak_kilobytes() - before, 1) / 1024


if __name__ == "__main__":
    given, number = _build(sys.argv[1]), int(sys.argv[3])
    if sys.argv[2] == "memory":
        print(_added_megabytes(given, number))
    else:
        measured = Timing("", "", given).measure(number)
        print(measured.ratio, measured.ours, measured.peer)
