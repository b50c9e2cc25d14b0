"""A model as it was at one moment: a copy of its run folder that nothing else changes, a queue and workers."""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from saccade.data.readers.files import check_file
from saccade.runs import load
from saccade.runs.folder import check_run
from saccade.serving.batching import Batches, Job, Unavailable
from saccade.serving.metrics import Metrics
from saccade.serving.process import Process
from saccade.serving.settings import Settings
from saccade.serving.worker import Reply
from saccade.tasks import Task

log = logging.getLogger("saccade.serving")

KEPT = ("config.yaml", "task", "model.safetensors", "provenance.json", "README.md", "checksums.json", "export.json")
"""The files of a run that a server copies, including int8 exports; a run without a final model is copied whole."""

READERS = 2
"""How many requests of a model are decoded at a time: a large picture takes 200 MB and seconds."""

PAUSE = (0.2, 30.0)
"""Seconds before a crashed worker is replaced: the first time, and the maximum after repeated crashes."""


class BadInput(ValueError):  # noqa: N818 (a refusal)
    """An input or option that cannot be used."""


class Mistake(Exception):  # noqa: N818 (ours)
    """An internal error in a worker. The client gets no details; the log gets the place, without the input."""

    def __init__(self, place: str) -> None:
        super().__init__("Internal server error.")
        self.place = place

    def log(self, request: str) -> None:
        """Writes where it happened."""
        log.error("mistake", extra={"request": request, "problem": self.place})


class Version:
    """A copy of a run folder, as it was at one moment, and the workers that answer with it.

    Args:
        name: of the model, for the log and the metrics.
        folder: the run.
        trust: whether it may use classes that are not Saccade's.
    """

    def __init__(self, name: str, folder: Path, *, settings: Settings, metrics: Metrics, trust: bool) -> None:
        self.name, self.settings, self.metrics, self.trust = name, settings, metrics, trust
        self._copy = tempfile.TemporaryDirectory(prefix="saccade-serve-")
        try:
            self.folder = copy_run(check_run(folder), Path(self._copy.name))
            run = load(self.folder, trust=trust)  # all of it: a damaged run is refused here
        except (ValueError, OSError) as error:
            self._copy.cleanup()
            kind = ValueError if isinstance(error, ValueError) else OSError
            raise kind(str(error).replace(self._copy.name, str(folder))) from None  # nobody knows the copy
        except BaseException:
            self._copy.cleanup()
            raise
        self.task: Task = run.task
        self.read = run.read
        self.model_name = type(run.model).__name__
        self.parameters = sum(parameter.numel() for parameter in run.model.parameters())
        self.queue = Batches(limit=settings.queue * settings.workers, budget=settings.batch_cost, wait=settings.wait)
        self.readers = ThreadPoolExecutor(READERS, "saccade-read")
        self.started = False
        self.ready = 0
        self.users = 0
        """Requests that are being read, and will be put into the queue."""
        self._unused = asyncio.Event()
        self._slots: list[asyncio.Task[None]] = []
        self.processes: set[Process] = set()

    async def start(self) -> None:
        """Starts the workers; raises unless all of them have loaded the model."""
        count = self.settings.workers
        self.started = True
        started = await asyncio.gather(
            *(Process.start(self.folder, trust=self.trust) for _ in range(count)), return_exceptions=True
        )
        failed = [each for each in started if isinstance(each, BaseException)]
        if failed:
            for each in started:
                if isinstance(each, Process):
                    await each.kill()
            raise failed[0]
        self._slots = [asyncio.create_task(self._work(each)) for each in started if isinstance(each, Process)]

    async def close(self) -> None:
        """Answers the waiting jobs, then ends the workers."""
        while self.users:
            self._unused.clear()
            await self._unused.wait()
        self.queue.close()
        await asyncio.gather(*self._slots)
        self.readers.shutdown(wait=False)
        self._copy.cleanup()

    def release(self) -> None:
        """Notes that a request has been read, and was queued or rejected."""
        self.users -= 1
        if not self.users:
            self._unused.set()

    async def _work(self, process: Process | None) -> None:
        """Runs one worker, and replaces it if it crashes."""
        pause = PAUSE[0]
        while True:
            if process is None:
                process = await self._replace(pause)
                pause = min(2 * pause, PAUSE[1])
                if process is None:
                    if self.queue.closed:
                        self.queue.fail(Unavailable("The server is shutting down."))
                        return
                    continue
            self.processes.add(process)
            self.ready += 1
            try:
                while batch := await self._take(process):
                    started = time.monotonic()
                    try:
                        await self._answer(process, batch)
                    finally:
                        self.queue.done(batch, time.monotonic() - started)
                    pause = PAUSE[0]
                await process.end()
                return
            except Unavailable as error:
                log.error("worker ended", extra={"model": self.name, "worker": process.pid, "problem": str(error)})
                self.metrics.restarts.labels(self.name).inc()
            finally:
                self.ready -= 1
                self.processes.discard(process)
            await process.kill()
            process = None

    async def _take(self, process: Process) -> list[Job]:
        """The next batch for a worker; raises if the worker ends meanwhile, before a request has to fail for it."""
        taking = asyncio.create_task(self.queue.take())
        await asyncio.wait((taking, process.ended), return_when=asyncio.FIRST_COMPLETED)
        if not taking.done():
            taking.cancel()
            raise Unavailable("It ended while it had nothing to do.")
        return taking.result()

    async def _replace(self, pause: float) -> Process | None:
        await asyncio.sleep(pause)
        if self.queue.closed and not self.queue.waiting:
            return None
        try:
            return await Process.start(self.folder, trust=self.trust)
        except (Unavailable, ValueError, OSError) as error:
            log.error("worker not started", extra={"model": self.name, "problem": str(error)})
            return None

    async def _answer(self, process: Process, batch: Sequence[Job]) -> None:
        """Passes a batch to a worker, and its replies to the jobs."""
        self.metrics.batches.labels(self.name).observe(len(batch))
        first = batch[0]

        def event(value: bytes) -> bool:
            first.events.put_nowait(value)
            return not first.answer.done()

        left = max(job.deadline for job in batch) - time.monotonic()
        try:
            replies = await asyncio.wait_for(
                process.ask(first.kind, [job.given for job in batch], event), max(0.1, left)
            )
        except TimeoutError:  # the worker may never come back
            error = Unavailable("The answer was not ready in time.")
            for job in batch:
                job.fail(error)
            raise error from None
        except Unavailable as error:
            for job in batch:
                job.fail(error)
            raise
        for job, reply in zip(batch, replies, strict=True):
            settle(job, reply)


def settle(job: Job, reply: Reply) -> None:
    """Completes a job with its worker's reply."""
    if job.answer.done():
        return
    if reply.state == "done":
        job.answer.set_result(reply.value)
    elif reply.state == "bad":
        job.answer.set_exception(BadInput(reply.value))
    else:
        job.answer.set_exception(Mistake(reply.value))


def copy_run(folder: Path, to: Path) -> Path:
    """Copies what `load` reads: the workers of a server must all see the same run, whatever happens to the folder."""
    finished = (folder / "model.safetensors").is_file()
    kept = {*KEPT} if finished else {*KEPT, "checkpoints"}
    paths = [path for path in sorted(folder.iterdir()) if path.name in kept]
    for path in paths:
        if path.is_symlink() and path.is_dir():  # it may lead to the whole disk
            raise ValueError(f"{path} is a link, not a folder: replace it with a copy of the original.")
    size = sum(path.stat().st_size + sum(each.lstat().st_size for each in path.rglob("*")) for path in paths)
    free = shutil.disk_usage(to).free
    if size > free:
        raise OSError(f"{folder} has {size:,} bytes, and {to.parent}, where workers read a copy, has {free:,} free.")
    for path in paths:
        if path.is_dir():
            shutil.copytree(path, to / path.name, symlinks=True)
        else:
            shutil.copyfile(check_file(str(path)), to / path.name)
    return to
