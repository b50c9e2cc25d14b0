"""Several runs of a model in one block."""

import types

import pytest
import torch
from torch import nn

import saccade
from saccade.models import RNNSearch
from saccade.search import beam
from tests.interpretation.recording.models import Layer, Stack


class Writer(nn.Module):
    """A decoder that calls its layer once per step."""

    def __init__(self):
        super().__init__()
        self.layer = Layer()

    def forward(self, x, place):
        return self.layer(x[:, place : place + 1])

    def generate(self, x):
        for place in range(x.shape[1]):
            self(x, place)


@pytest.fixture
def x():
    return torch.randn(2, 5, 12)


def twice(model, x):
    """A function that has the model as its first argument is not part of a run if the block is in it."""
    with saccade.record(model) as trace:
        model.generate(x)
        model.generate(x[:1, :3])
    return trace


def test_runs_are_not_joined(x):
    trace = twice(Writer(), x)
    with pytest.raises(ValueError, match=r"The 8 calls of 'layer' come from 2 runs .* run=0"):
        trace.joined("layer")
    assert trace.joined("layer", run=0).shape == (2, 3, 5, 1)
    assert trace.joined("layer", run=1).shape == (1, 3, 3, 1)
    with pytest.raises(ValueError, match="run=2, but 'layer' has 2 runs"):
        trace.joined("layer", run=2)


def test_steps_in_a_loop_are_joined(x):
    model = Writer()
    with saccade.record(model) as trace:
        for place in range(5):
            model(x, place)
    assert trace.joined("layer").shape == (2, 3, 5, 1)
    assert len({call.kept.run for call in trace.values()}) == 5
    stack = Stack()
    with saccade.record(stack) as trace:
        stack(x)
    assert [call.kept.run for call in trace.values()] == [0, 0, 0]


def test_searches_are_runs():
    model = RNNSearch(source_vocab=11, target_vocab=13, embedding_dim=8, hidden_dim=8).eval()
    source, mask = torch.randint(3, 11, (2, 5)), torch.ones(2, 5, dtype=torch.bool)
    with torch.no_grad(), saccade.record(model) as trace:
        for _ in range(2):
            beam(model, model.encode(source, mask), size=2, max_length=6)
    with pytest.raises(ValueError, match="come from 2 runs of the model"):
        trace.joined("decoder.attention")
    first, second = (trace.joined("decoder.attention", run=run) for run in (0, 1))
    assert torch.equal(first, second)


def evaluate(model, texts):
    for text in texts:
        model.generate(text)


def test_a_function_that_runs_the_model_is_no_run(x):
    model = Writer()
    with saccade.record(model) as trace:
        evaluate(model, [x, x[:1, :3]])
    assert len(trace.runs) == 2
    with pytest.raises(ValueError, match="come from 2 runs"):
        trace.joined("layer")


def undocumented(method):
    return lambda *args: method(*args)


def run_it(self, x):
    for place in range(x.shape[1]):
        self(x, place)


class Decorated(Writer):
    written = undocumented(Writer.generate)
    run = run_it


def test_methods_by_other_ways_are_runs(x):
    model = Decorated()
    model.patched = types.MethodType(run_it, model)
    for name in ("written", "run", "patched"):
        with saccade.record(model) as trace:
            getattr(model, name)(x)
        assert len(trace.runs) == 1, name
