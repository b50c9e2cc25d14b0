"""Inputs of many requests become batches."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from saccade.serving.batching import Batches, Full, Job, Unavailable


def job(name: str, *, key: object = "same", cost: int = 1, seconds: float = 60.0) -> Job:
    return Job("predict", name, key, cost, time.monotonic() + seconds, asyncio.get_running_loop().create_future())


def queue(limit: int = 100, budget: int = 100, wait: float = 0.0) -> Batches:
    return Batches(limit=limit, budget=budget, wait=wait)


def names(batch: list[Job]) -> str:
    return "".join(each.given for each in batch)


def run(coroutine) -> None:
    """In a thread of its own: a browser of other tests may leave a loop running in this one."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, asyncio.wait_for(coroutine, 10)).result()


def test_what_waits_shares_a_batch_in_order() -> None:
    async def check() -> None:
        jobs = queue()
        jobs.put([job(name) for name in "abc"])
        assert names(await jobs.take()) == "abc"

    run(check())


def test_other_options_have_a_batch_of_their_own() -> None:
    async def check() -> None:
        jobs = queue()
        jobs.put([job("a", key=1), job("b", key=2), job("c", key=1), job("d", key=None), job("e", key=None)])
        assert [names(await jobs.take()) for _ in range(4)] == ["ac", "b", "d", "e"]

    run(check())


def test_a_batch_keeps_to_the_budget_with_padding() -> None:
    async def check() -> None:
        jobs = queue(budget=10)
        jobs.put([job("a", cost=2), job("b", cost=3), job("c", cost=3), job("d", cost=4), job("e", cost=99)])
        # Three of at most 3 positions are 9; with d they would be 16. What is larger than the budget goes alone.
        assert [names(await jobs.take()) for _ in range(3)] == ["abc", "d", "e"]

    run(check())


def test_idle_workers_share_what_waits() -> None:
    async def check() -> None:
        jobs = queue()
        takers = [asyncio.create_task(jobs.take()) for _ in range(2)]
        await asyncio.sleep(0)
        jobs.put([job(name) for name in "abcdefg"])
        assert [names(batch) for batch in await asyncio.gather(*takers)] == ["abcd", "efg"]

    run(check())


def test_only_a_busy_server_waits_for_more() -> None:
    async def check() -> None:
        jobs = queue(wait=0.3)
        jobs.put([job("a"), job("b")])
        started = time.monotonic()
        first = await jobs.take()
        assert time.monotonic() - started < 0.2
        jobs.put([job("c")])
        asyncio.get_running_loop().call_later(0.1, lambda: jobs.put([job("d")]))
        started = time.monotonic()
        assert names(await jobs.take()) == "cd"  # as many as the first batch has
        assert time.monotonic() - started < 0.25
        jobs.put([job("e")])
        started = time.monotonic()
        assert names(await jobs.take()) == "e"
        assert time.monotonic() - started > 0.25
        jobs.done(first, 0.1)

    run(check())


def test_a_full_queue_refuses_whole_requests() -> None:
    async def check() -> None:
        jobs = queue(limit=3)
        jobs.put([job("a"), job("b")])
        with pytest.raises(Full, match="Too many inputs are waiting: try again in 1 s") as refused:
            jobs.put([job("c"), job("d")])
        assert refused.value.seconds == 1
        jobs.put([job("e")])
        batch = await jobs.take()
        assert names(batch) == "abe"
        jobs.put([job("f")])  # if none wait, any request fits
        with pytest.raises(Full):
            jobs.put([job("g")])  # "abe" are still being answered
        jobs.done(batch, 1.0)
        jobs.put([job("g")])
        assert names(await jobs.take()) == "fg"
        jobs.put([job(name) for name in "hijkl"])
        assert names(await jobs.take()) == "hijkl"

    run(check())


def test_inputs_that_are_being_read_have_their_places() -> None:
    async def check() -> None:
        jobs = queue(limit=3)
        with jobs.reserve(2):
            jobs.put([job("a")])
            with pytest.raises(Full):
                jobs.put([job("b")])
            with pytest.raises(Full), jobs.reserve(1):
                pass
        jobs.put([job("c"), job("d")])
        assert names(await jobs.take()) == "acd"
        with jobs.reserve(7), pytest.raises(Full):  # larger than the queue, which is empty
            jobs.check(1)

    run(check())


def test_passed_deadlines_and_clients_that_left_are_dropped() -> None:
    async def check() -> None:
        jobs = queue()
        late, gone, kept = job("late", seconds=-1.0), job("gone"), job("kept")
        jobs.put([late, gone, kept])
        gone.answer.cancel()
        assert await jobs.take() == [kept]
        with pytest.raises(Unavailable, match="too busy"):
            late.answer.result()

    run(check())


def test_a_closed_queue_gives_out_what_is_left() -> None:
    async def check() -> None:
        jobs = queue()
        waiting = asyncio.create_task(jobs.take())
        await asyncio.sleep(0)
        jobs.put([job("a")])
        jobs.close()
        assert names(await waiting) == "a"
        assert await jobs.take() == []

    run(check())
