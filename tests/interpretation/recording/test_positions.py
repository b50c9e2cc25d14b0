"""Which positions keys and queries stand at."""

import pytest
import torch
from torch import nn

import saccade
from tests.interpretation.recording.models import Cached, Fused


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("steps", [1, 3])
def test_a_cache_that_was_filled_before_the_recording(eager, steps):
    model, x = Cached(eager=eager), torch.randn(2, 11, 12)
    with torch.no_grad():
        model.steps(x[:, :5])
        with saccade.record(model) as trace:
            for place in range(5, 5 + steps):
                model(x[:, place : place + 1])
    assert [call.query_positions for call in trace.calls] == [range(n, n + 1) for n in range(5, 5 + steps)]
    joined = trace.joined("Cached")
    assert joined.shape[2:] == (5 + steps, 5 + steps)
    assert (joined[:, :, :5] == 0).all()


def test_growing_shows_that_a_cache_was_filled():
    class Quiet(Cached):
        is_causal = None

    model, x = Quiet(), torch.randn(1, 7, 12)
    with torch.no_grad():
        model.steps(x[:, :5])
        with saccade.record(model) as trace:
            model(x[:, 5:6])
            model(x[:, 6:])
    assert [call.query_positions for call in trace.calls] == [range(5, 6), range(6, 7)]


def test_texts_of_growing_length_are_no_cache():
    class Pooling(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Fused()

        def forward(self, x):
            return self.inner(torch.ones(1, 1, 1, 5), x, x)

    model = Pooling()
    with torch.no_grad(), saccade.record(model) as trace:
        for length in (7, 8):
            model(torch.randn(1, 1, length, 5))
    assert [call.key_positions for call in trace.calls] == [range(7), range(8)]
    assert [call.kept.positions.query or 0 for call in trace.calls] == [0, 0]
