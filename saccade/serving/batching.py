"""The queue of a model: inputs of many requests, handed out as batches."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any


class Full(Exception):  # noqa: N818 (a refusal)
    """The queue is full; `seconds` is when to try again."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"Too many inputs are waiting: try again in {math.ceil(seconds)} s.")
        self.seconds = math.ceil(seconds)


class Unavailable(Exception):  # noqa: N818 (a refusal)
    """There is no answer, though the input is fine: the worker crashed, or the deadline has passed."""


class Gone(Exception):  # noqa: N818 (nobody hears of it)
    """The client has disconnected, so its request need not be computed."""

    def __init__(self) -> None:
        super().__init__("The client disconnected.")


@dataclass(eq=False)
class Job:
    """One piece of work for a worker.

    Args:
        kind: what to do: read an input (done by the server itself), predict, explain or stream.
        given: the input.
        key: jobs with equal keys may share a batch; None never does.
        cost: its positions.
        deadline: on the monotonic clock.
        answer: set when the job is done.
        events: what a stream writes before it is done.
    """

    kind: str
    given: Any
    key: Hashable
    cost: int
    deadline: float
    answer: asyncio.Future[Any]
    events: asyncio.Queue[Any] = field(default_factory=asyncio.Queue)

    def fail(self, error: Exception) -> None:
        """Ends the job without an answer, unless its client has disconnected."""
        if not self.answer.done():
            self.answer.set_exception(error)


class Batches:
    """Jobs in the order of their arrival, taken out in batches.

    An idle server answers at once. While all workers are busy, inputs accumulate, and the next free worker takes as
    many as fit into a batch: the busier the server, the larger its batches. A worker that would get a smaller batch
    than the other workers waits a little for more: clients that were just answered may ask again.

    Args:
        limit: how many jobs may be unanswered: waiting, including those whose inputs are still being read, or in
            batches that are being answered, for which later jobs have to wait too.
        budget: the maximum number of positions in a batch, including padding.
        wait: how many seconds to wait at most for more jobs while other batches are being answered.
    """

    def __init__(self, *, limit: int, budget: int, wait: float) -> None:
        self.limit, self.budget, self.wait = limit, budget, wait
        self.waiting: deque[Job] = deque()
        self.reserved = 0
        """Places of jobs whose inputs are being read."""
        self.running: list[int] = []
        """The number of jobs in each batch that is being answered."""
        self.idle = 0
        self.rate = 0.0
        """The recent rate in jobs per second."""
        self._changed = asyncio.Event()
        self.closed = False

    def put(self, jobs: Sequence[Job]) -> None:
        """Adds the jobs of a request, all or none; if none wait, a request of any size fits."""
        self.check(len(jobs))
        self.waiting.extend(jobs)
        self._changed.set()

    def check(self, count: int) -> None:
        """Raises `Full` if this many jobs could not be added now."""
        before = self._drop() + self.reserved
        if before and before + count + sum(self.running) > self.limit:
            raise Full(min(60.0, max(1.0, before / self.rate)) if self.rate else 1.0)

    @contextmanager
    def reserve(self, count: int) -> Iterator[None]:
        """Reserves places for this many jobs while their inputs are read; put them right afterwards."""
        self.check(count)
        self.reserved += count
        try:
            yield
        finally:
            self.reserved -= count

    def close(self) -> None:
        """Accepts no more jobs; `take` returns what is left, then an empty batch."""
        self.closed = True
        self._changed.set()

    def fail(self, error: Exception) -> None:
        """Fails all waiting jobs."""
        for job in self.waiting:
            job.fail(error)
        self.waiting.clear()

    async def take(self) -> list[Job]:
        """The next batch; empty if the queue is closed."""
        self.idle += 1
        try:
            while not self._drop():
                if self.closed:
                    return []
                self._changed.clear()
                await self._changed.wait()
            await self._gather()
            batch = self._next()
        finally:
            self.idle -= 1
        if not batch:
            return await self.take()
        self.running.append(len(batch))
        return batch

    async def _gather(self) -> None:
        """Waits until there are as many jobs as in other batches, or until the time is up."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.wait):
                while len(self.waiting) * len(self.running) < sum(self.running) and not self.closed:
                    if self._cost() >= self.budget:
                        return
                    self._changed.clear()
                    await self._changed.wait()

    def done(self, batch: Sequence[Job], seconds: float) -> None:
        """Notes that a batch has been answered."""
        self.running.remove(len(batch))
        rate = len(batch) / max(seconds, 1e-6)
        self.rate = rate if not self.rate else 0.8 * self.rate + 0.2 * rate

    def _next(self) -> list[Job]:
        """The oldest job and those that may share its batch; waiting jobs are divided among the idle workers."""
        if not self._drop():
            return []
        first = self.waiting.popleft()
        batch, kept, longest = [first], deque[Job](), first.cost
        share = math.ceil((1 + len(self.waiting)) / max(1, self.idle))
        for job in self.waiting:
            larger = max(longest, job.cost)
            fits = first.key is not None and job.key == first.key and larger * (len(batch) + 1) <= self.budget
            if fits and len(batch) < share:
                batch.append(job)
                longest = larger
            else:
                kept.append(job)
        self.waiting = kept
        if kept:
            self._changed.set()
        return batch

    def _cost(self) -> int:
        return sum(job.cost for job in self.waiting)

    def _drop(self) -> int:
        """Drops jobs whose clients have disconnected or whose deadline has passed; returns how many are left."""
        now = time.monotonic()
        if any(job.answer.done() or job.deadline <= now for job in self.waiting):
            for job in self.waiting:
                if job.deadline <= now:
                    job.fail(Unavailable("The server was too busy to answer in time."))
            self.waiting = deque(job for job in self.waiting if not job.answer.done())
        return len(self.waiting)
