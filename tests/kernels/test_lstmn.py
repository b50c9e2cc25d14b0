"""All steps of an LSTMN at once against its equations, one step at a time."""

import weakref

import pytest
import torch

from saccade.kernels import lstmn
from saccade.kernels.lstmn import lstmn_sequence, lstmn_sequence_reference

STEPS, BATCH, ATTENTION, SIZE = 7, 3, 5, 2


def tensors(steps=STEPS):
    torch.manual_seed(0)
    shapes = [
        (steps, BATCH, ATTENTION),
        (steps, BATCH, 4 * SIZE),
        (ATTENTION, SIZE),
        (ATTENTION, SIZE),
        (ATTENTION,),
        (4 * SIZE, SIZE),
    ]
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize("native", ["0", "1"])
@pytest.mark.parametrize("window", [None, 1, 2, 11])
@pytest.mark.parametrize("steps", [1, 2, STEPS])
def test_equals_its_reference(monkeypatch, native, window, steps):
    monkeypatch.setenv("SACCADE_NATIVE", native)
    given = tensors(steps)
    (fast, _), plain = lstmn_sequence(*given, window=window), lstmn_sequence_reference(*given, window=window)
    torch.testing.assert_close(fast, plain)
    towards = torch.randn_like(plain)
    # The first step reads nothing, so one step alone has no attention, and its parameters no gradient.
    theirs = torch.autograd.grad(plain, given, towards, allow_unused=True, materialize_grads=True)
    torch.testing.assert_close(torch.autograd.grad(fast, given, towards), theirs)


def past(count):
    torch.manual_seed(1)
    return torch.randn(BATCH, count, 2 * SIZE, dtype=torch.float64), torch.randn(BATCH, SIZE, dtype=torch.float64)


@pytest.mark.parametrize("window", [None, 1, 4])
@pytest.mark.parametrize("count", [1, 3, 6])
@pytest.mark.parametrize("steps", [1, STEPS])
def test_goes_on_from_a_past_without_a_gradient_into_it(window, count, steps):
    given = tensors(steps)
    fast, looked = lstmn_sequence(*given, window=window, past=past(count))
    plain = lstmn_sequence_reference(*given, window=window, past=past(count))
    torch.testing.assert_close(fast, plain)
    towards = torch.randn_like(plain)
    torch.testing.assert_close(torch.autograd.grad(fast, given, towards), torch.autograd.grad(plain, given, towards))
    whole = looked.weights()
    assert whole.shape == (BATCH, steps, count + steps)
    torch.testing.assert_close(whole.sum(-1), torch.ones_like(whole[..., 0]))


@pytest.mark.parametrize("window", [None, 2])
def test_two_pieces_equal_one(window):
    given = tensors()
    whole = lstmn_sequence_reference(*given, window=window)
    first = lstmn_sequence(*(each[:3] for each in given[:2]), *given[2:], window=window)
    known = (first[0], first[1].last)
    second = lstmn_sequence(*(each[3:] for each in given[:2]), *given[2:], window=window, past=known)
    torch.testing.assert_close(torch.cat([first[0], second[0]], 1), whole)


def test_gradcheck():
    assert torch.autograd.gradcheck(lambda *given: lstmn_sequence(*given)[0], tensors(4))


@pytest.mark.parametrize("window", [None, 2])
def test_the_weights_as_a_matrix(window):
    tapes, looked = lstmn_sequence(*tensors(), window=window)
    whole = looked.weights()
    assert whole.shape == (BATCH, STEPS, STEPS)
    torch.testing.assert_close(whole[:, 1:].sum(-1), torch.ones_like(whole[:, 1:, 0]))
    assert not whole.triu().any()
    if window is not None:
        assert not whole.tril(-window - 1).any()
        assert whole[:, -1, -3:-1].all()
    torch.testing.assert_close(looked.last, (whole[:, -1:] @ tapes[..., :SIZE]).squeeze(1))


@pytest.mark.parametrize("learns", [False, True])
def test_weights_are_kept_only_for_gradients(monkeypatch, learns):
    alive = weakref.WeakSet()
    own = lstmn._weights

    def weights(*given):
        found = own(*given)
        alive.add(found)
        return found

    monkeypatch.setattr(lstmn, "_weights", weights)
    with torch.set_grad_enabled(learns):
        _tapes, looked = lstmn_sequence(*tensors())
    assert len(alive) == (STEPS - 1 if learns else 0)
    assert looked.weights()[:, 1:].sum() == pytest.approx(BATCH * (STEPS - 1))
