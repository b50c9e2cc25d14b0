"""What waits until somebody looks."""

import copy
import pickle

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import saccade
from saccade.interpretation.recording import backlog
from tests.interpretation.recording.models import Cached, Fused, plain_weights


class Reader(nn.Module):
    """A decoder: steps with a cache, each followed by attention to another sequence."""

    def __init__(self, window=None, reorder=False):
        super().__init__()
        self.own, self.source, self.reorder = Cached(window), Fused(), reorder

    def forward(self, x, source):
        self.own.past = None
        for place in range(x.shape[1]):
            self.own(x[:, place : place + 1].contiguous())  # otherwise nn.Linear adds its bias in place
            self.source(x[:, None, place : place + 1], source, source)
            if self.reorder:  # as a beam search does
                self.own.past = [part.flip(0) for part in self.own.past]


def read(model, x, source, **options):
    with torch.no_grad(), saccade.record(model, **options) as trace:
        model(x, source)
    return trace


def read_steps(model, x):
    with torch.no_grad(), saccade.record(model) as trace:
        model.steps(x)
    return trace


def test_steps_share_the_keys_of_the_last_one():
    trace = read(Reader(), torch.randn(2, 13, 12), torch.randn(2, 1, 7, 12))
    for path in ("own", "source"):
        keys = [call.kept.tensors["key"] for call in trace.find(path)]
        assert len({key.untyped_storage().data_ptr() for key in keys}) == 1
        assert [key.shape[2] for key in keys] == ([*range(1, 14)] if path == "own" else [7] * 13)


def test_steps_whose_weights_a_change_leaves_alone_share_keys_too():
    model, x = Cached(), torch.randn(2, 13, 12)
    expected = read_steps(model, x)
    with torch.no_grad(), saccade.record(model, change={"Cached": lambda weights, mask, steps: weights}) as trace:
        model.steps(x)
    assert len({call.kept.tensors["key"].untyped_storage().data_ptr() for call in trace.calls}) == 1
    assert [call.query_positions for call in trace.calls] == [range(place, place + 1) for place in range(13)]
    assert torch.equal(trace.joined("Cached"), expected.joined("Cached"))


def test_keys_that_were_appended_to_are_not_compared(monkeypatch):
    model, x = Cached(), torch.randn(2, 13, 12)
    expected = read_steps(model, x)

    def never(*_):
        raise AssertionError("compared")

    monkeypatch.setattr(torch, "equal", never)
    trace = read_steps(model, x)
    monkeypatch.undo()
    assert len({call.kept.tensors["key"].data_ptr() for call in trace.calls}) == 1
    torch.testing.assert_close(trace.joined("Cached"), expected.joined("Cached"), rtol=0, atol=0)


@pytest.mark.parametrize("dim", [-2, 2, 1], ids=str)
def test_what_was_appended_elsewhere_or_overwritten_is_compared(dim):
    """Keys that are changed after they were attended, or joined along another axis, are no longer the first ones."""

    class Rewriting(nn.Module):
        def forward(self, query, key, more):
            F.scaled_dot_product_attention(query, key, key)
            if dim != 1:
                key += 1
            both = torch.cat([key, more], dim=dim)
            F.scaled_dot_product_attention(query, both[:, :1] if dim == 1 else both, both[:, :1] if dim == 1 else both)

    query, key, more = torch.randn(1, 1, 3, 4), torch.randn(1, 1, 3, 4), torch.randn(1, 1, 3, 4)
    before = key.clone()
    with saccade.record(model := Rewriting()) as trace:
        model(query, key, more)
    first, second = trace.calls
    if dim == 1:
        torch.testing.assert_close(first.weights.double(), plain_weights(query, before))
        torch.testing.assert_close(second.weights.double(), plain_weights(query, before))
    else:
        with pytest.raises(RuntimeError, match="key of 'Rewriting' was changed in place"):
            _ = first.weights
        torch.testing.assert_close(second.weights.double(), plain_weights(query, torch.cat([before + 1, more], 2)))


def test_tensors_overwritten_before_anybody_looks_are_an_error():
    query, key = torch.randn(2, 1, 3, 5, 4)
    with saccade.record(model := Fused()) as trace:
        model(query, key, key)
        query.zero_()
    with pytest.raises(RuntimeError, match="query of 'Fused' was changed in place"):
        _ = trace["Fused"].weights


def test_calls_stay_in_order_however_they_are_kept():
    """Tensors with gradients, in inference mode or of three axes are looked at at once; the others wait."""
    model, x = Fused(), torch.randn(1, 2, 3, 4)
    given = [x, x.clone().requires_grad_(), x.clone() + 1, x[0] + 2, x + 3]
    with saccade.record(model) as trace:
        for each in given:
            model(each, each, each)
        assert len(trace) == 5
    for each, call in zip(given, trace.calls, strict=True):
        expected = plain_weights(each.detach(), each.detach())
        torch.testing.assert_close(call.weights.double().reshape(expected.shape), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("options", [{"window": 5}, {"reorder": True}], ids=str)
def test_weights_in_place_of_keys_are_the_same(options, monkeypatch):
    model, x, source = Reader(**options), torch.randn(2, 13, 12), torch.randn(2, 1, 7, 12)
    plain = read(model, x, source)
    monkeypatch.setattr(backlog, "SLACK", 3000)
    settled = read(model, x, source)
    assert {"weights"} in [set(kept.tensors) for _, kept in settled.noted]
    assert all("key" in kept.tensors for _, kept in plain.noted)
    for name in plain:
        torch.testing.assert_close(settled[name].weights, plain[name].weights, rtol=0, atol=1e-6)
        assert settled[name].key_positions == plain[name].key_positions
        assert settled[name].query_positions == plain[name].query_positions
    shared = {call.kept.tensors["key"].data_ptr() for call in settled.find("source") if "key" in call.kept.tensors}
    assert shared == {source.data_ptr()}


def test_looking_in_between_changes_nothing(monkeypatch):
    monkeypatch.setattr(backlog, "SLACK", 3000)
    model, x = Cached(window=5), torch.randn(1, 13, 12)
    with torch.no_grad(), saccade.record(model) as trace:
        for place in range(13):
            model(x[:, place : place + 1])
            last = trace.calls[-1]
            assert last.query_positions == range(place, place + 1)
            assert last.key_positions == range(max(place - 4, 0), place + 1)
    model.past = None
    with torch.no_grad(), saccade.record(model) as other:
        for place in range(13):
            model(x[:, place : place + 1])
    torch.testing.assert_close(trace.joined("Cached"), other.joined("Cached"), rtol=0, atol=1e-6)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda trace: pickle.loads(pickle.dumps(trace))])
def test_copies_know_positions(copied):
    model, x = Cached(window=5), torch.randn(1, 11, 12)
    with torch.no_grad(), saccade.record(model) as trace:
        model.steps(x)
    other = copied(trace)
    assert [call.key_positions for call in other.calls] == [range(max(n - 4, 0), n + 1) for n in range(11)]
    assert torch.equal(other.joined("Cached"), trace.joined("Cached"))
