"""Operators are seen however they are called, in one thread, and nothing is left of that."""

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
        else:
            weights = SCRIPTED(scores)
        return weights @ x


@torch.jit.script
def SCRIPTED(scores: torch.Tensor) -> torch.Tensor:
    return torch.softmax(scores, -1)


WAYS = ("method", "function", "module", "special", "operator", "kernel", "script")


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
