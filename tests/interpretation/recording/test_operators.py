"""Operators are seen however they are called, in one thread, and nothing is left of that."""

import subprocess
import sys
import threading

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import saccade
from saccade.kernels.private_torch import WATCHING, is_paused


def watching():
    return torch._C._dispatch_tls_is_dispatch_key_included(WATCHING)


class Hand(nn.Module):
    def __init__(self, way):
        super().__init__()
        self.way = way

    def forward(self, x):
        scores = x @ x.mT
        if self.way == "method":
            weights = scores.softmax(-1)
        elif self.way == "function":
            weights = F.softmax(scores, dim=-1)
        elif self.way == "module":
            weights = nn.Softmax(-1)(scores)
        elif self.way == "special":
            weights = torch.special.softmax(scores, -1)
        elif self.way == "operator":
            weights = torch.ops.aten.softmax.int(scores, -1)
        elif self.way == "kernel":
            weights = torch.ops.aten._softmax(scores, -1, False)
        elif self.way == "out":
            weights = torch.softmax(scores, -1, out=torch.empty_like(scores))
        else:
            weights = SCRIPTED(scores)
        return weights @ x


@torch.jit.script
def SCRIPTED(scores: torch.Tensor) -> torch.Tensor:
    return torch.softmax(scores, -1)


WAYS = ("method", "function", "module", "special", "operator", "kernel", "out", "script")


@pytest.mark.parametrize("way", WAYS)
def test_every_softmax_is_seen_once(way):
    model, x = Hand(way), torch.randn(2, 3, 5)
    wanted = model(x)
    with saccade.record(model) as trace:
        assert torch.equal(model(x), wanted)
    assert list(trace) == ["Hand"]
    torch.testing.assert_close(trace["Hand"].weights[:, 0], (x @ x.mT).softmax(-1), rtol=0, atol=1e-6)


def test_tensors_keep_their_methods():
    """Setting a method of Tensor would make Python look up all of them anew."""
    before = vars(torch.Tensor).copy()
    with saccade.record(Hand("method")):
        assert vars(torch.Tensor) == before


def test_other_threads_are_not_watched():
    model, x = Hand("method"), torch.randn(2, 3, 5)
    seen = []

    def other():
        seen.append(watching())
        model(x)

    with saccade.record(model) as trace:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert watching()
    assert seen == [False]
    assert len(trace) == 0


def fail(*_):
    raise ZeroDivisionError


@pytest.mark.parametrize("kernel", [fail, F.scaled_dot_product_attention])
def test_nothing_is_left_after_errors(kernel):
    class Failing(nn.Module):
        def forward(self, x):
            return fail(kernel(x, x, x.mT))  # sizes that do not fit

    with pytest.raises((ZeroDivisionError, RuntimeError)), saccade.record(Failing()):
        Failing()(torch.randn(2, 3, 5))
    assert not watching()
    assert not is_paused()


def test_overlapping_recordings():
    first, second, x = Hand("method"), Hand("function"), torch.randn(2, 3, 5)
    outer, inner = saccade.record(first), saccade.record(second)
    one, two = outer.__enter__(), inner.__enter__()
    first(x)
    outer.__exit__(None, None, None)
    assert watching()
    second(x)
    inner.__exit__(None, None, None)
    assert not watching()
    assert (list(one), list(two)) == (["Hand"], ["Hand"])


class Branching(nn.Module):
    """Calls an operator that takes functions, which PyTorch dispatches in Python."""

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x.softmax(-1), lambda x: 2 * x, (x,))


def test_operators_that_take_functions():
    model, x = Branching(), torch.ones(2, 3, 5)
    wanted = model(x)
    with saccade.record(model):
        torch.testing.assert_close(model(x), wanted)


class Marked(torch.Tensor):
    """A subclass whose results are converted after each function."""


def test_softmaxes_of_tensor_subclasses():
    model, x = Hand("method"), torch.randn(2, 3, 5)
    with saccade.record(model) as trace:
        result = model(x.as_subclass(Marked))
    assert type(result) is Marked
    torch.testing.assert_close(trace["Hand"].weights[:, 0], (x @ x.mT).softmax(-1), rtol=0, atol=1e-6)


def test_inference_modes_that_end_during_a_recording():
    model, x = Hand("method"), torch.randn(2, 3, 5)

    @torch.inference_mode()  # every step has its own
    def stream():
        with saccade.record(model) as trace:
            for _ in range(3):
                model(x)
                yield trace

    before = vars(torch.inference_mode).copy()
    (*_, trace) = stream()
    assert len(trace) == 3
    assert not watching()
    assert vars(torch.inference_mode) == before


def test_a_recording_that_ends_in_an_inference_mode():
    model, x = Hand("method"), torch.randn(2, 3, 5)
    recording = saccade.record(model)
    recording.__enter__()
    with torch.inference_mode():
        recording.__exit__(None, None, None)
    model(x)  # the end of the mode has brought back the watch, and the first softmax ends it
    assert not watching()


def test_models_are_exported_during_a_recording():
    model, x = Hand("function").eval(), torch.randn(2, 3, 5)
    with saccade.record(model):
        program = torch.export.export(model, (x,), strict=False)
    torch.testing.assert_close(program.module()(x), model(x))


class HoldingMultiHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend = F.multi_head_attention_forward
        self.parts = nn.MultiheadAttention(6, 2)

    def forward(self, x):
        parts = self.parts
        given = x, x, x, 6, 2, parts.in_proj_weight, parts.in_proj_bias, None, None, False, 0.0
        return self.attend(*given, parts.out_proj.weight, parts.out_proj.bias)


def test_functions_that_a_module_holds():
    model, x = HoldingMultiHead(), torch.randn(5, 3, 6)
    for _ in range(2):
        with saccade.record(model) as trace:
            _, averaged = model(x)
        assert trace["HoldingMultiHead"].shape == (3, 2, 5, 5)
        torch.testing.assert_close(trace["HoldingMultiHead"].weights.mean(1), averaged, rtol=0, atol=1e-6)
    assert model.attend is F.multi_head_attention_forward


TOGETHER = """
import threading, torch, saccade
from saccade.interpretation.recording.patches import patches
from torch.nn import functional as F
original, errors = F.scaled_dot_product_attention, []
barrier = threading.Barrier(8)
def run():
    model = torch.nn.MultiheadAttention(4, 2)
    barrier.wait()
    try:
        with saccade.record(model):
            model(*[torch.ones(3, 1, 4)] * 3)
    except Exception as error:
        errors.append(error)
threads = [threading.Thread(target=run) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert not errors, errors
assert F.scaled_dot_product_attention is original
import sys
for name in [name for name in sys.modules if name.startswith("saccade")]:
    del sys.modules[name]
import saccade
model = torch.nn.Softmax(-1)
with saccade.record(model):
    model(torch.ones(2, 3))
"""


def test_threads_that_record_first_and_a_second_import():
    done = subprocess.run([sys.executable, "-c", TOGETHER], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
