"""From a request to its answers."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

from fastapi import Request

from saccade.serving.batching import Gone, Job, Unavailable
from saccade.serving.hosting import Hosted
from saccade.serving.inputs import read_inputs
from saccade.serving.version import BadInput, Mistake, Version
from saccade.tasks import Example, Options

SHORT = 4096
"""Inputs with fewer characters are read directly: passing them to a thread would take longer."""


def chosen(models: Mapping[str, Hosted], name: str | None) -> Hosted:
    """The model that a request names."""
    if name is None or name not in models:
        raise BadInput(f"model: choose from {', '.join(models)}; got {name!r:.60}.")
    return models[name]


def given_options(options: Any) -> dict[str, Any]:
    """The options of a body that were given."""
    return {} if isinstance(options, dict) else options.model_dump(exclude_unset=True)


def options_of_form(text: str) -> dict[str, Any]:
    """The options in a form, as JSON."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise BadInput("options: must be a JSON object.")
    return found


def checked_options(kind: type[Options], given: Mapping[str, Any]) -> Options:
    """The options of a task with these values."""
    if not given:
        return _defaults(kind)  # type: ignore[arg-type] # mypy takes the hash of instances for that of the class
    try:
        return kind.of(given)
    except (ValueError, TypeError, OverflowError) as error:
        raise BadInput(f"options: {str(error).removeprefix('options.')}") from None


@cache
def _defaults(kind: type[Options]) -> Options:
    return kind.of({})


def follow(request: Request, jobs: Sequence[Job]) -> None:
    """Registers the jobs of a request: they are cancelled when the client disconnects, or at once if it already has."""
    request.state.jobs = jobs
    if request.state.left:
        raise Gone


async def read(
    request: Request, version: Version, inputs: Sequence[Any], *, until: float, where: str = "input"
) -> list[tuple[Example, int]]:
    """The examples for the inputs, with their costs; a full queue rejects them before they are decoded.

    Slow inputs are read in a thread. They have their places in the queue, and are cancelled like any other job: reading
    that has not begun never does, and a thread stops after the current input.
    """
    do = partial(read_inputs, version, inputs, where=where, until=until)
    if all(isinstance(value, str) for value in inputs) and sum(map(len, inputs)) <= SHORT:
        version.queue.check(len(inputs))
        return do()
    loop = asyncio.get_running_loop()
    with version.queue.reserve(len(inputs)):
        job = Job("read", None, None, 1, until, loop.create_future())
        follow(request, [job])
        reading = loop.run_in_executor(version.readers, partial(do, left=job.answer.done))
        waited: set[asyncio.Future[Any]] = {reading, job.answer}
        try:
            left = max(0.0, until - time.monotonic())
            done, _ = await asyncio.wait(waited, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waited:
                each.cancel()  # unless it is done
        if not job.answer.cancelled():
            job.answer.result()  # raises: the client has left
        if not done:
            raise Unavailable("The inputs could not be read in time.")
        return reading.result()


async def answers(jobs: Sequence[Job]) -> list[bytes]:
    """The answers to all jobs; if one fails, the others are not waited for."""
    try:
        async with asyncio.timeout(jobs[0].deadline - time.monotonic()):
            if len(jobs) == 1:
                return [await jobs[0].answer]
            return list(await asyncio.gather(*(job.answer for job in jobs)))
    except TimeoutError:
        raise Unavailable("The answer was not ready in time.") from None
    finally:
        for job in jobs:
            if not job.answer.done():
                job.answer.cancel()
            elif not job.answer.cancelled():
                job.answer.exception()  # seen, even where another one was reported


async def next_event(job: Job) -> bytes | None:
    """The next event of a stream; None once the answer, which may be an error, has arrived."""
    event: asyncio.Future[bytes] = asyncio.ensure_future(job.events.get())
    try:
        left = max(0.0, job.deadline - time.monotonic())
        done, _ = await asyncio.wait({event, job.answer}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        event.cancel()
        job.answer.cancel()
        raise
    if not done:
        job.fail(Unavailable("The answer was not ready in time."))
    if event.done():
        return event.result()
    event.cancel()
    job.answer.result()
    return None


async def events(job: Job, first: bytes | None, request: str) -> AsyncIterator[bytes]:
    """A stream as server-sent events: `token` for each token, then `answer` or `error`.

    Args:
        job: the stream.
        first: its first event.
        request: the id of the request, for the log.
    """
    try:
        event = first
        while event is not None:
            yield b"event: token\ndata: " + event + b"\n\n"
            event = await next_event(job)
        yield b"event: answer\ndata: " + job.answer.result() + b"\n\n"
    except Gone:
        return
    except (Unavailable, BadInput, Mistake) as error:
        if isinstance(error, Mistake):
            error.log(request)
        yield b"event: error\ndata: " + json.dumps({"detail": str(error)}).encode() + b"\n\n"
    finally:
        job.answer.cancel()
