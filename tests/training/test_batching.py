"""Batches that are prepared in the background are those that would be prepared when they are needed."""

import threading
from typing import ClassVar

import pytest
import torch

from saccade.fields import Field
from saccade.tasks import Task
from saccade.training.batching import Batching


class Noisy(Field):
    """Augments in training, and remembers who asked."""

    def __init__(self, decodes):
        self.decodes = decodes
        self.threads = set()

    def encode(self, value):
        return value

    def pad(self, encoded, generator=None):
        self.threads.add(threading.current_thread().name)
        values = torch.tensor(encoded, dtype=torch.float64)
        return {"values": values if generator is None else values + torch.rand(len(values), generator=generator)}


class Plain(Task):
    targets: ClassVar = {}

    def __init__(self, decodes):
        self.inputs = {"x": Noisy(decodes)}


ROWS = [{"x": float(n)} for n in range(11)]
BATCHES = [[0, 3], [5], [7, 2, 9], []]


def batches(*, decodes, ahead, seed=1, process=0):
    task = Plain(decodes)
    batching = Batching(task, ROWS, seed=seed, process=process)
    found = []
    for place, indices in enumerate(BATCHES):
        if ahead:
            batching.prefetch(place + 1, BATCHES[place + 1 : place + 2])
        found.append(batching.batch(place, indices)["x"])
    batching.close()
    return found, task.inputs["x"].threads


def test_prefetching_changes_nothing_but_the_thread():
    now, here = batches(decodes=False, ahead=True)
    later, elsewhere = batches(decodes=True, ahead=True)
    assert [batch.tolist() for batch in now] == [batch.tolist() for batch in later]
    assert here == {threading.current_thread().name}
    assert len(elsewhere - here) >= 1


def test_randomness_depends_on_seed_place_and_process():
    first, _ = batches(decodes=False, ahead=False)
    again, _ = batches(decodes=False, ahead=False)
    assert [batch.tolist() for batch in first] == [batch.tolist() for batch in again]
    for change in ({"seed": 2}, {"process": 1}):
        other, _ = batches(decodes=False, ahead=False, **change)
        assert all(not torch.equal(a, b) for a, b in zip(first, other, strict=True))


def test_an_empty_share_of_a_batch_is_the_first_example():
    found, _ = batches(decodes=False, ahead=False)
    assert found[-1].shape == (1,)
    assert found[-1].long().item() == 0


def test_an_error_in_the_background_reaches_the_training():
    task = Plain(True)
    task.inputs["x"].pad = lambda encoded, generator: 1 / 0
    batching = Batching(task, ROWS, seed=1, process=0)
    batching.prefetch(0, [[1]])
    with pytest.raises(ZeroDivisionError):
        batching.batch(0, [1])
    batching.close()
