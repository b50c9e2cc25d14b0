"""What is recorded, when, and under which name."""

import threading

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import saccade
from saccade.interpretation.recording import installed
from tests.interpretation.recording.models import Eager, Layer, Stack


@pytest.fixture
def x():
    return torch.randn(2, 7, 12)


def test_names_are_paths_and_call_numbers(x):
    model = Stack()
    with saccade.record(model) as trace:
        model(x)
        model(x)
    assert list(trace) == ["first", "first#1", "second", "first#2", "first#3", "second#1"]
    torch.testing.assert_close(trace["first"].weights, model.first.weights(x).float(), rtol=0, atol=1e-6)
    torch.testing.assert_close(trace["first#1"].weights, model.first.weights(model.first(x)).float(), rtol=0, atol=1e-6)


def test_nothing_is_left_behind(x):
    model = Stack()
    before = torch.overrides.has_torch_function, saccade.Attention.read
    recording = saccade.record(model)

    def fail():
        with recording:
            model.first(x)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    trace = recording.trace
    assert list(trace) == ["first"]
    assert (torch.overrides.has_torch_function, saccade.Attention.read) == before
    assert not installed._local.listeners
    model(x)
    assert list(trace) == ["first"]


def test_nested_recordings(x):
    model = Stack()
    with saccade.record(model) as outer:
        model(x)
        with saccade.record(model.second) as inner:
            model(x)
        model(x)
    assert list(inner) == ["Layer"]
    assert len(outer) == 9
    assert torch.equal(inner["Layer"].weights, outer["second#1"].weights)


def test_only_the_model_is_recorded(x):
    model, other = Layer(), Layer()
    with saccade.record(model) as trace:
        other(x)
        F.scaled_dot_product_attention(x, x, x)
        model(x)
    assert list(trace) == ["Layer"]
    torch.testing.assert_close(trace["Layer"].weights, model.weights(x).float(), rtol=0, atol=1e-6)


def test_gradients_are_those_without(x):
    model = Stack()
    with saccade.record(model) as trace:
        grads = torch.autograd.grad(model(x)[..., 0].sum(), list(model.parameters()))
    expected = torch.autograd.grad(model(x)[..., 0].sum(), list(model.parameters()))
    assert all(map(torch.equal, grads, expected))
    assert not any(tensor.requires_grad for call in trace.values() for tensor in call.kept.tensors.values())
    assert not trace["second"].weights.requires_grad


def test_what_is_computed_again_is_recorded_once(x):
    layer = Layer()
    with saccade.record(layer) as trace:
        checkpoint(layer, x.requires_grad_(), use_reentrant=False).sum().backward()
    assert list(trace) == ["Layer"]


@pytest.mark.parametrize("whole", [True, False])
def test_compiled_models(x, whole):
    model = Stack()
    compiled = torch.compile(model, backend="eager")
    compiled(x)
    with saccade.record(compiled if whole else model) as trace:
        compiled(x)
    assert list(trace) == ["first", "first#1", "second"]


def test_other_threads_go_on_unrecorded(x):
    model, attention = Stack(), saccade.Attention(score=saccade.scores.ScaledDotScore())
    results = []

    def work():
        results.append((model(x), attention(x, x).context))

    with saccade.record(model) as trace:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert len(trace) == 0
        model(x)
    assert len(trace) == 3
    assert torch.equal(results[0][0], model(x))


def test_two_threads_record_each_its_own(x):
    models = [Stack(), Layer()]
    traces = {}
    barrier = threading.Barrier(2)

    def work(number):
        with saccade.record(models[number]) as trace:
            barrier.wait()
            models[number](x)
            barrier.wait()
        traces[number] = list(trace)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert traces == {0: ["first", "first#1", "second"], 1: ["Layer"]}


class Cached(nn.Module):
    """A decoder layer that writes its keys into one tensor, step by step."""

    def __init__(self):
        super().__init__()
        self.layer = Layer()
        self.cache = torch.zeros(2, 2, 3, 7, 4)

    def forward(self, x, place, way):
        query, *new = self.layer.split(x[:, place : place + 1])
        for part, values in zip(self.cache, new, strict=True):
            if way == "setitem":
                part[:, :, place : place + 1] = values
            elif way == "index_copy":
                part.index_copy_(2, torch.tensor([place]), values)
            else:
                torch.add(values, 0, out=part[:, :, place : place + 1])
        mask = (torch.arange(7) <= place)[None]
        return F.scaled_dot_product_attention(query, *self.cache, attn_mask=mask)


@pytest.mark.parametrize("way", ["setitem", "index_copy", "out"])
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_caches_that_are_overwritten(x, way, mode):
    model = Cached()
    with mode(), saccade.record(model) as trace:
        for place in range(7):
            model(x, place, way)
        model.cache.zero_()
    expected = model.layer.weights(x, causal=True).float()
    torch.testing.assert_close(trace.joined("Cached"), expected, rtol=0, atol=1e-6)


def test_a_change_that_was_not_seen_is_reported(x):
    class Mask(nn.Module):
        def forward(self, x, mask):
            return F.scaled_dot_product_attention(x, x, x, attn_mask=mask)

    model, mask = Mask(), torch.zeros(7, 7)
    with saccade.record(model) as trace:
        model(x, mask)
    assert trace["Mask"].weights.shape == (2, 1, 7, 7)
    mask += 1
    with pytest.raises(RuntimeError, match="mask of 'Mask' was changed in place since it was recorded"):
        _ = trace["Mask"].weights


def test_an_optimiser_in_the_block():
    model, x = nn.MultiheadAttention(12, 3, batch_first=True), torch.randn(2, 7, 12)
    optimiser = torch.optim.SGD(model.parameters(), lr=1.0)
    expected = []
    with saccade.record(model) as trace:
        for _ in range(2):
            output, weights = model(x, x, x, average_attn_weights=False)
            expected.append(weights.detach())
            output.square().sum().backward()
            optimiser.step()
    for call, weights in zip(trace.values(), expected, strict=True):
        torch.testing.assert_close(call.weights, weights, rtol=0, atol=1e-6)


def test_bad_models():
    with pytest.raises(TypeError, match=r"nn\.Module, got str"):
        saccade.record("model")
    with pytest.raises(TypeError, match="TorchScript"):
        saccade.record(torch.jit.script(nn.Linear(2, 3)))


def test_a_recording_is_used_once(x):
    recording = saccade.record(Layer())
    with recording:
        pass
    with pytest.raises(RuntimeError, match="makes another"), recording:
        pass


def test_inside_of_vmap_is_refused(x):
    model = Layer()
    with pytest.raises(NotImplementedError, match=r"torch\.func"), saccade.record(model):
        torch.vmap(model)(x.unsqueeze(1))


def test_the_mode_costs_nothing_when_it_is_over(x):
    model = Eager("method")
    with saccade.record(model) as trace:
        model(x)
    assert torch.overrides._get_current_function_mode_stack() == []
    assert len(trace) == 1
