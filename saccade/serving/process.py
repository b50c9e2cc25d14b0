"""A worker, seen from the server."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from saccade.runs.frames import pack, read_async
from saccade.serving.batching import Unavailable
from saccade.serving.worker import STOP, Reply

START = 120.0
"""Seconds that a worker may take to load its model."""


class Process:
    """A process that answers batches with one copy of a model."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._to, self._from = process, process.stdin, process.stdout
        self.ended = asyncio.create_task(process.wait())
        """Done as soon as the process has ended, whatever ended it."""

    @classmethod
    async def start(cls, folder: Path, *, trust: bool) -> Self:
        """Starts a worker and waits until it has loaded the run; raises `ValueError` if it cannot."""
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        environment.pop("SACCADE_TOKEN", None)  # workers have no use for it
        environment["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
        started = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-c", "from saccade.serving.worker import main; main()", str(folder), "trust" if trust else "-"),
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=2**20,
            start_new_session=True,  # Ctrl-C in a terminal reaches the server alone
        )
        process = cls(started)
        try:
            reply = await asyncio.wait_for(read_async(process._from), START)
        except asyncio.IncompleteReadError:
            code = await started.wait()
            how = f"with code {code}" if code >= 0 else f"by signal {-code}, perhaps because memory is short"
            raise Unavailable(f"A worker ended {how} while loading the model.") from None
        except TimeoutError:
            await process.kill()
            raise Unavailable(f"A worker did not load the model within {START:g} s.") from None
        except BaseException:
            await process.kill()
            raise
        if reply.state != "ready":
            await process.kill()
            raise ValueError(reply.value)
        return process

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    async def ask(self, kind: str, several: Sequence[Any], event: Callable[[bytes], bool]) -> list[Reply]:
        """A reply to each job; raises `Unavailable` if the worker ends first.

        Args:
            kind: what to do.
            several: the inputs.
            event: takes the events of a stream, and returns whether anyone is still listening.
        """
        heard = True
        try:
            self._to.write(pack((kind, list(several))))
            await self._to.drain()
            while True:
                reply = await read_async(self._from)
                if isinstance(reply, list):
                    return reply
                if not event(reply.value) and heard:
                    heard = False
                    self._to.write(pack((STOP, [])))
        except (asyncio.IncompleteReadError, ConnectionError):
            raise Unavailable("The worker that computed this answer ended unexpectedly: try again.") from None

    async def end(self) -> None:
        """Closes the worker's input so that it ends by itself; kills it if it does not."""
        self._to.close()
        try:
            await asyncio.wait_for(asyncio.shield(self.ended), 5.0)
        except TimeoutError:
            await self.kill()

    async def kill(self) -> None:
        """Ends the worker at once."""
        if self._process.returncode is None:
            self._process.kill()
        await self.ended
