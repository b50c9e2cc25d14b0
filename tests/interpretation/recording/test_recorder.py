"""What is recorded, when, and under which name."""

import functools
import gc
import sys
import threading
import weakref

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention.bias import causal_lower_right, causal_upper_left
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import checkpoint

import saccade
from saccade.attention import watchers
from saccade.interpretation.recording.patches import patches
from tests.interpretation.recording import models
from tests.interpretation.recording.models import Eager, Layer, Stack, plain_weights


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


@pytest.mark.parametrize("make_bias", [causal_lower_right, causal_upper_left])
@pytest.mark.parametrize("queries", [3, 5])
def test_biases_that_ask_which_function_they_are_called_for(make_bias, queries):
    class Biased(nn.Module):
        def forward(self, query, key):
            return F.scaled_dot_product_attention(query, key, key, attn_mask=make_bias(queries, 5))

    model, query, key = Biased(), torch.randn(2, 3, queries, 7), torch.randn(2, 3, 5, 7)
    alone = model(query, key)
    with saccade.record(model) as trace:
        assert torch.equal(model(query, key), alone)
    torch.testing.assert_close(trace["Biased"].weights @ key, alone, rtol=0, atol=1e-6)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_jagged_tensors_are_attended_as_they_are_without_a_recording():
    class Plain(nn.Module):
        def forward(self, rows):
            return F.scaled_dot_product_attention(rows, rows, rows)

    rows = [torch.randn(length, 2, 7) for length in (3, 5)]
    jagged = torch.nested.nested_tensor(rows, layout=torch.jagged).transpose(1, 2)
    model = Plain()
    alone = model(jagged)
    with saccade.record(model) as trace:
        found = model(jagged)
    assert all(torch.equal(a, b) for a, b in zip(found.unbind(), alone.unbind(), strict=True))
    weights = trace["Plain"].weights
    assert trace["Plain"].shape == weights.shape == (2, 2, 5, 5)
    for number, row in enumerate(jagged.unbind()):
        length = row.shape[1]
        expected = plain_weights(row, row).float()
        torch.testing.assert_close(weights[number, :, :length, :length], expected, rtol=0, atol=1e-6)
        assert (weights[number, :, length:] == 0).all()
        assert (weights[number, :, :, length:] == 0).all()


def test_what_a_notebook_imports_after_a_recording_is_seen(monkeypatch, x):
    with saccade.record(Stack()):
        pass
    monkeypatch.setattr("__main__.softly_attend", F.scaled_dot_product_attention, raising=False)

    class Notebook(nn.Module):
        def forward(self, x):
            return sys.modules["__main__"].softly_attend(x, x, x)

    model = Notebook()
    with saccade.record(model) as trace:
        model(x)
    assert list(trace) == ["Notebook"]


def _replaced():
    """What a recording changes for a while."""
    functions = "scaled_dot_product_attention", "multi_head_attention_forward", "softmax"
    fast = torch._native_multi_head_attention, torch._transformer_encoder_layer_fwd
    others = torch.overrides.has_torch_function, torch.softmax, torch.Tensor.softmax
    return *(getattr(F, name) for name in functions), *fast, *others, models.scaled_dot_product_attention


def test_nothing_is_left_behind(x):
    model = Stack()
    before = _replaced()
    recording = saccade.record(model)

    def fail():
        with recording:
            model.first(x)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    trace = recording.trace
    assert list(trace) == ["first"]
    assert all(now is then for now, then in zip(_replaced(), before, strict=True))
    assert "softmax" not in vars(torch.Tensor)
    assert not patches.calls.thread.recordings
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
    both = [Stack(), Layer()]
    traces, before = {}, _replaced()
    barrier = threading.Barrier(2)

    def work(number):
        with saccade.record(both[number]) as trace:
            barrier.wait()
            both[number](x)
            barrier.wait()
        traces[number] = list(trace)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert traces == {0: ["first", "first#1", "second"], 1: ["Layer"]}
    assert all(now is then for now, then in zip(_replaced(), before, strict=True))


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
    with pytest.raises(RuntimeError, match="only once"), recording:
        pass


def test_inside_of_vmap_is_refused(x):
    model = Layer()
    with pytest.raises(NotImplementedError, match=r"torch\.func"), saccade.record(model):
        torch.vmap(model)(x.unsqueeze(1))


def modes():
    return torch.overrides._get_current_function_mode_stack()


def test_functions_are_watched_only_where_that_is_needed(x):
    fused, eager = Stack(), Eager("method")
    with saccade.record(fused.second) as trace:
        fused.second(x)
        assert modes() == []  # nothing to follow, nothing that was ever changed in place
    with saccade.record(eager):
        F.softmax(x, dim=-1)
        assert modes() == []  # not the model's
        eager(x)
        assert len(modes()) == 1
    assert modes() == []
    assert len(trace) == 1


def test_tensors_go_with_the_trace(x):
    model = Eager("method")
    gc.disable()
    try:
        with saccade.record(model) as trace:
            model(x)
        kept = [weakref.ref(tensor) for tensor in trace["Eager"].kept.tensors.values()]
        del trace
        assert kept
        assert not [tensor for tensor in kept if tensor() is not None]
    finally:
        gc.enable()


class Named(nn.Module):
    """Has a name of its own for the fused kernel."""

    def __init__(self):
        super().__init__()
        self.kernel = F.scaled_dot_product_attention

    def forward(self, x):
        return self.kernel(x, x, x)


def test_kernels_by_other_names(x):
    model = Named()
    with saccade.record(model) as trace:
        model(x)
        model(x)
    assert list(trace) == ["Named", "Named#1"]
    assert model.kernel is F.scaled_dot_product_attention is torch._C._nn.scaled_dot_product_attention
    written = {"__name__": "written"}
    code = "from torch import nn, softmax as soft\nclass Hand(nn.Module):\n    def forward(self, x):\n        "
    exec(code + "return soft(x @ x.mT, dim=-1) @ x", written)
    model = written["Hand"]()
    with saccade.record(model) as trace:
        model(x)
    torch.testing.assert_close(trace["Hand"].weights[:, 0], (x @ x.mT).softmax(-1), rtol=0, atol=1e-6)
    assert written["soft"] is torch.softmax


def test_kernels_from_before_a_module_is_one(x):
    class Early(Named):
        def __init__(self):
            self.kernel = F.scaled_dot_product_attention
            nn.Module.__init__(self)

    model = Early()
    assert next(iter(vars(model))) == "kernel"
    with saccade.record(model) as trace:
        model(x)
    assert list(trace) == ["Early"]


def test_modules_that_come_and_go_between_recordings(x):
    model = Stack()
    inner = nn.Sequential(Layer(), Named())
    expected = {
        "as it was": ["first", "first#1", "second"],
        "replaced": ["first.0", "first.1", "first.0#1", "first.1#1", "second"],
        "moved": ["first", "first#1", "second.0", "second.1"],
        "changed inside": ["first", "first#1", "second.0.0", "second.1"],
        "given a function": ["first", "first#1", "second.0.0", "second.1", "Stack"],
    }
    found = {}

    def record(change):
        with saccade.record(model) as trace:
            model(x)
        found[change] = list(trace)

    record("as it was")
    first, model.first = model.first, inner
    record("replaced")
    model.first, model.second = first, inner
    record("moved")
    inner[0] = nn.Sequential(Layer())
    record("changed inside")
    output, model.kernel = model.output, F.scaled_dot_product_attention
    model.output.register_forward_pre_hook(lambda _, args: (model.kernel(*args * 3),))
    record("given a function")
    assert found == expected
    assert model.output is output
    assert model.kernel is F.scaled_dot_product_attention


def test_models_are_freed(x):
    class Knowing(Stack):
        def __init__(self):
            super().__init__()
            self.first.above = [self]  # a list, so that it is no module of its own

    traces, models_, children = [], [], []
    for kind in (Stack, Knowing):
        model = kind()
        for _ in range(2):
            with torch.no_grad(), saccade.record(model) as trace:
                model(x)
        traces.append(trace)
        models_.append(weakref.ref(model))
        children += map(weakref.ref, [*model.modules(), *model.parameters()])
        del model
    assert models_[0]() is None  # at once, the other one when cycles are looked for
    gc.collect()
    assert not [reference for reference in models_ + children if reference() is not None]
    assert all(list(trace) == ["first", "first#1", "second"] for trace in traces)


def test_parameters_may_get_other_values_by_data(x):
    layer = nn.MultiheadAttention(12, 3, batch_first=True).requires_grad_(False)
    with saccade.record(layer) as trace:
        expected = layer(x, x, x, average_attn_weights=False)[1]
    layer.double()
    torch.testing.assert_close(trace["MultiheadAttention"].weights, expected, rtol=0, atol=1e-6)


def test_positional_masks_of_the_functional_form(x):
    class Functional(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.MultiheadAttention(12, 3)

        def forward(self, x, mask):
            inner = self.inner
            parameters = inner.in_proj_weight, inner.in_proj_bias, None, None, False, 0.0
            out = inner.out_proj.weight, inner.out_proj.bias
            return F.multi_head_attention_forward(x, x, x, 12, 3, *parameters, *out, False, None, False, mask)

    model, mask = Functional(), torch.ones(2, 2, dtype=torch.bool).triu(1)
    with saccade.record(model) as trace:
        model(x, mask)
    expected = model.inner(x, x, x, attn_mask=mask, average_attn_weights=False)[1]
    torch.testing.assert_close(trace["Functional"].weights, expected, rtol=0, atol=1e-6)


class Counting(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("style", ["functional", "method"])
def test_other_modes_come_and_go(x, style):
    model, outer, inner = Eager(style), Counting(), Counting()
    with outer:
        with saccade.record(model) as trace:
            with torch.device("cpu"), inner:
                model(x)
                assert inner in modes()
            assert inner not in modes()
            model(x)
        assert modes() == [outer]
        model(x)
    assert modes() == []
    assert len(trace) == 2
    for call in trace.values():
        torch.testing.assert_close(call.weights, model.weights(x).float(), rtol=0, atol=1e-6)


def test_reductions_of_readings_are_not_attention_themselves(x):
    model = saccade.Attention(score=saccade.scores.ScaledDotScore(), selection=saccade.selections.Sparsemax())
    with saccade.record(model, reduce="mean") as trace:
        model(x, x)
    assert len(trace) == 1
    layer = Layer()
    with saccade.record(layer, reduce=("top_k", 2)) as trace:
        layer(x)
        assert modes() == []
    assert len(trace) == 1


def test_replacements_are_lifted_for_a_compiler_and_come_back():
    attention = saccade.Attention(score=saccade.scores.DotScore())
    keys = torch.randn(2, 5, 3)
    before = F.scaled_dot_product_attention
    with saccade.record(attention) as trace:
        replaced = F.scaled_dot_product_attention
        assert replaced is not before
        assert attention.watched()
        with patches.lifted():
            assert F.scaled_dot_product_attention is before
            assert not attention.watched()
            attention(keys[:, :1], keys)
        assert F.scaled_dot_product_attention is replaced
        attention(keys, keys)
    assert F.scaled_dot_product_attention is before
    assert not attention.watched()
    assert [call.shape for call in trace.calls] == [(2, 1, 5, 5)]


class Sparse(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = saccade.Attention(score=saccade.scores.DotScore(), selection=saccade.selections.Entmax())

    def forward(self, x):
        return self.attention(x, x).context


def test_exports_without_a_recording_leave_nothing_behind():
    compiled = []

    def backend(graph, _):
        compiled.append(graph)
        return graph

    torch.export.export(Sparse(), (torch.randn(2, 5, 3),))  # its loop is traced
    assert "softmax" not in vars(torch.Tensor)
    assert watchers == []
    torch.compile(lambda x: x + 1, backend=backend)(torch.ones(3))
    assert len(compiled) == 1


def test_attributes_that_become_attention_between_two_recordings_are_seen() -> None:
    model = Replaceable()
    for before in ("eager", functools.partial(print), None, (3.0).is_integer):
        model.function = before
        with saccade.record(model) as trace:
            model(torch.randn(1, 2, 5, 3))
        assert not trace.calls
        del before
        model.function = None
        model.function = functools.partial(torch.nn.functional.scaled_dot_product_attention)
        with saccade.record(model) as trace:
            model(torch.randn(1, 2, 5, 3))
        assert len(trace.calls) == 1


class Replaceable(torch.nn.Module):
    """Attends only where its attribute is attention."""

    def __init__(self) -> None:
        super().__init__()
        self.function = None

    def forward(self, x):
        attends = isinstance(self.function, functools.partial) and self.function.func is not print
        return self.function(x, x, x) if attends else x


def test_a_recording_that_ends_in_another_thread(x):
    model = Stack()
    recording = saccade.record(model)
    trace = recording.__enter__()
    errors = []

    def leave():
        with pytest.raises(RuntimeError, match="must end in the thread in which it started"):
            recording.__exit__(None, None, None)
        errors.append(True)

    thread = threading.Thread(target=leave)
    thread.start()
    thread.join()
    assert errors == [True]
    with torch.no_grad():
        model(x)
    assert len(trace) == 0
    with torch.no_grad(), saccade.record(model) as again:
        model(x)
    assert len(again) == 3
