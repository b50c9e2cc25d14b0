"""Multi30k English to German as token ids, and comparisons whose sides run in separate processes.

SACCADE_DATA names the data folder, which contains `multi30k/train.lc.norm.tok.en.gz` and so on. A joint BPE of 8,000
pieces is learnt once for all sides, so that all read and write the same tokens.
"""

import atexit
import functools
import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import Measurement

ROOT = Path(__file__).resolve().parent.parent
VOCAB = 8000
REPEATS = 3
"""Number of fresh processes per side: they take seconds, so there are fewer than in other benchmarks."""


def folder() -> Path:
    found = Path(os.environ.get("SACCADE_DATA", ROOT.parent / "shared" / "data")) / "multi30k"
    if not found.is_dir():
        raise FileNotFoundError(f"no folder {found}: set SACCADE_DATA to the folder that contains multi30k")
    return found


def lines(split: str, language: str) -> list[str]:
    file = folder() / f"{split}.lc.norm.tok.{language}.gz"
    if not file.is_file():
        raise FileNotFoundError(f"no file {file}")
    with gzip.open(file, "rt", encoding="utf-8") as text:
        return text.read().splitlines()


def temporary_folder() -> Path:
    """A folder that is deleted when this process ends."""
    made = Path(tempfile.mkdtemp(prefix="saccade-benchmark-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def task(**options: Any) -> Any:
    from saccade.data.tokenisers import tokenisers
    from saccade.fields import Text
    from saccade.tasks import Generation

    source = Text(tokeniser=tokenisers.create("bpe", vocab_size=VOCAB))
    return Generation(source=source, joint=True, metrics=["exact_match"], **options)


@functools.cache
def prepared() -> Path:
    """A folder with the tokeniser and the ids of both splits, for this process and those it starts."""
    sources, targets = lines("train", "en"), lines("train", "de")
    learned = task()
    learned.fit([{"source": a, "target": b} for a, b in zip(sources, targets, strict=True)])
    made = temporary_folder()
    learned.save(made)
    tokeniser = learned.source.tokeniser
    tests = lines("test_2016_flickr", "en"), lines("test_2016_flickr", "de")
    for name, pair in (("train", (sources, targets)), ("test", tests)):
        ids = [[tokeniser.encode(a), tokeniser.encode(b)] for a, b in zip(*pair, strict=True)]
        (made / f"{name}.json").write_text(json.dumps(ids))
    return made


def pairs(name: str, made: str) -> list[tuple[list[int], list[int]]]:
    """The ids of source and target, without start and end tokens."""
    return [tuple(pair) for pair in json.loads((Path(made) / f"{name}.json").read_text())]


@dataclass(frozen=True)
class Layout:
    """How two cores are used."""

    workers: int
    threads: int

    def __str__(self) -> str:
        return f"{self.workers} x {self.threads}"


ONE_PROCESS, TWO_WORKERS = Layout(1, 2), Layout(2, 1)


def rate(module: str, side: str, layout: Layout) -> float:
    """The combined rate per second of all workers of one side, each on its share, started together after warming up."""
    command = [sys.executable, "-m", f"benchmarks.{module}", side, str(prepared())]
    environment = {**os.environ, "OMP_NUM_THREADS": str(layout.threads), "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    running = [
        subprocess.Popen(
            [*command, str(worker), str(layout.workers)],
            env=environment,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for worker in range(layout.workers)
    ]
    try:
        for process in running:
            if process.stdout.readline().strip() != "ready":
                said = process.communicate()[1].strip().splitlines()
                problem = said[-1] if said else "no output"
                missing = "ImportError" in problem or "ModuleNotFound" in problem
                raise (ImportError if missing else RuntimeError)(problem)
        for process in running:
            process.stdin.write("go\n")
            process.stdin.flush()
        done = []
        for process in running:
            out, said = process.communicate()
            if process.returncode:
                raise RuntimeError(f"{side} failed: {said.strip().splitlines()[-1]}")
            done.append(json.loads(out.splitlines()[-1]))
    finally:
        for process in running:
            process.kill()
            process.wait()
    return sum(units for units, _ in done) / max(seconds for _, seconds in done)


def work(warm_up: Callable[[], object], run: Callable[[], float]) -> None:
    """The worker side of `rate`: reports when it is ready, how much it did and how long it took."""
    warm_up()
    print("ready", flush=True)
    sys.stdin.readline()
    start = time.perf_counter()
    units = run()
    print(json.dumps([units, time.perf_counter() - start]), flush=True)


class Table:
    """The rates of all sides of a benchmark, measured alternately on first access."""

    def __init__(self, sides: dict[tuple[str, Layout], Callable[[], float]]) -> None:
        self.sides = sides
        self.rates: dict[tuple[str, Layout], list[float]] = {}
        self.problems: dict[tuple[str, Layout], Exception] = {}

    def measure(self, repeats: int) -> None:
        for _ in range(0 if self.rates else min(repeats, REPEATS)):
            for key, side in self.sides.items():
                if key in self.problems:
                    continue
                try:
                    self.rates.setdefault(key, []).append(side())
                except (ImportError, RuntimeError) as error:
                    self.problems[key] = error

    def median(self, key: tuple[str, Layout]) -> float:
        if key in self.problems:
            raise self.problems[key]
        return statistics.median(self.rates[key])


@dataclass(frozen=True)
class Comparison:
    """The ratio of our rate to the peer's, each with the best of several layouts."""

    what: str
    against: str
    table: Table
    ours: tuple[tuple[str, Layout], ...]
    peer: tuple[tuple[str, Layout], ...]
    unit: str
    must: float | None = None
    aim: float | None = None

    def measure(self, repeats: int) -> Measurement:
        self.table.measure(repeats)
        ours, peer = (max(map(self.table.median, keys)) for keys in (self.ours, self.peer))
        return Measurement(ours / peer, ours, peer, self.unit)
