"""Inputs that take long to decode wait in the queue like all others, and are given up like them."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import httpx
import pytest

from saccade.serving.app import make_app
from saccade.serving.asking import read
from saccade.serving.batching import Gone
from saccade.serving.settings import Settings
from saccade.serving.version import READERS

LONG = "good " * 1000
"""Long enough to be read in a thread."""


@pytest.fixture
def slow(films):
    """A server without workers, whose threads read nothing until they are let."""
    app = make_app({"films": films}, settings=Settings(queue=5, deadline=20.0))
    version = app.state.models["films"].version
    free, began = threading.Event(), []

    def waiting(inputs, start):
        began.append(inputs[0])
        free.wait(10)
        return [{"text": inputs[0]}]

    version.read = waiting
    yield app, version, free, began
    free.set()
    version.readers.shutdown()


def run(coroutine) -> None:
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, asyncio.wait_for(coroutine, 10)).result()


async def until(condition) -> None:
    end = time.monotonic() + 5
    while not condition() and time.monotonic() < end:
        await asyncio.sleep(0.005)
    assert condition()


def test_a_full_queue_refuses_what_it_would_have_to_decode(slow) -> None:
    app, version, _, began = slow

    async def check() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            asked = [asyncio.create_task(client.post("/predict", json={"inputs": [LONG]})) for _ in range(5)]
            await until(lambda: version.queue.reserved == 5)
            before = time.monotonic()
            for text in (LONG, "short"):
                refused = await client.post("/predict", json={"inputs": [text]})
                assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
            assert time.monotonic() - before < 3
            assert 'saccade_queue_inputs{model="films"} 5.0' in (await client.get("/metrics")).text
            for task in asked:
                task.cancel()
            await until(lambda: version.queue.reserved == 0)

    run(check())
    assert len(began) == READERS


def test_inputs_of_clients_that_left_are_not_decoded(slow) -> None:
    _, version, free, began = slow
    requests = [SimpleNamespace(state=SimpleNamespace(left=False)) for _ in range(READERS + 1)]

    async def check() -> None:
        end = time.monotonic() + 20
        asked = [asyncio.create_task(read(each, version, [LONG, LONG], until=end)) for each in requests[:-1]]
        await until(lambda: len(began) == READERS)
        asked.append(asyncio.create_task(read(requests[-1], version, ["never " * 1000], until=end)))
        await until(lambda: hasattr(requests[-1].state, "jobs"))
        for request in requests:  # as `Connection` does
            for job in request.state.jobs:
                job.fail(Gone())
        assert all(isinstance(each, Gone) for each in await asyncio.gather(*asked, return_exceptions=True))
        assert version.queue.reserved == 0
        with pytest.raises(Gone):  # it left before
            await read(SimpleNamespace(state=SimpleNamespace(left=True)), version, ["gone " * 1000], until=end)

    run(check())
    free.set()
    version.readers.shutdown()
    assert began == [LONG] * READERS  # neither the second input of those, nor what waited
