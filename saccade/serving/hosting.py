"""The models of a server by name: the version of each that serves, and its replacement by a new one."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from saccade.fields import plain
from saccade.serving.batching import Job
from saccade.serving.metrics import Metrics
from saccade.serving.pauses import spare_collector
from saccade.serving.settings import Settings
from saccade.serving.version import Version
from saccade.tasks import Task

log = logging.getLogger("saccade.serving")


class Hosted:
    """A model under one name, whose run folder may be replaced while it serves.

    Args:
        name: what requests call it.
        folder: the run.
    """

    def __init__(self, name: str, folder: Path, *, settings: Settings, metrics: Metrics, trust: bool = False) -> None:
        self.name, self.folder = name, folder
        self._make: Callable[[], Version] = lambda: Version(
            name, folder, settings=settings, metrics=metrics, trust=trust
        )
        self.version = self._make()
        self.settings = settings
        self._closing: set[asyncio.Task[None]] = set()
        self._reloading = asyncio.Lock()
        self._asked = False
        """Whether a reload waits for another one to end."""

    @property
    def task(self) -> Task:
        """The task of the current version."""
        return self.version.task

    async def start(self) -> None:
        """Starts the workers, unless they are already running."""
        if not self.version.started:
            await self.version.start()

    @contextmanager
    def using(self) -> Iterator[Version]:
        """The current version, which accepts jobs as long as the context lasts, even if another one replaces it."""
        version = self.version
        version.users += 1
        try:
            yield version
        finally:
            version.release()

    async def reload(self) -> bool:
        """Loads the current content of the run folder; if it is damaged, the old version keeps serving."""
        if self._asked:
            return False  # the one that waits will read what the folder holds then
        self._asked = True
        async with self._reloading:
            self._asked = False
            new: Version | None = None
            try:
                new = await asyncio.to_thread(self._make)
                check_same_interface(self.version.task, new.task)
                await new.start()
            except Exception as error:  # whatever it is, the old version must go on
                log.error("new version refused", extra={"model": self.name, "problem": f"{error or repr(error)}"})
                if new is not None:
                    await new.close()
                return False
            old, self.version = self.version, new
            log.info("new version serves", extra={"model": self.name})
            task = asyncio.create_task(_retire(old))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
            return True

    async def close(self) -> None:
        """Ends all workers once they have answered, including those of a new version that is still starting."""
        async with self._reloading:
            await asyncio.gather(self.version.close(), *self._closing)

    def deadline(self) -> float:
        """The deadline of a request that arrives now, on the monotonic clock."""
        return time.monotonic() + self.settings.deadline

    def job(self, kind: str, given: Any, *, deadline: float, key: Any = None, cost: int = 1) -> Job:
        """A new job, to be put into the queue."""
        return Job(kind, given, key, cost, deadline, asyncio.get_running_loop().create_future())


async def _retire(version: Version) -> None:
    await version.close()
    del version  # else it would be exempted from the collector too
    spare_collector()


def check_same_interface(old: Task, new: Task) -> None:
    """Raises unless a task takes the same requests as the one that a running server has described."""

    def shape(task: Task) -> list[Any]:
        return [
            type(task),
            task.options,
            task.explain_options,
            {role: type(plain(f)) for role, f in task.inputs.items()},
        ]

    if shape(old) != shape(new):
        kind = type(new).__name__.lower()
        raise ValueError(f"it has a different task or different inputs ({kind}): restart the server.")
