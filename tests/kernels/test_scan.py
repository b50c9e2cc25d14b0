import pytest
import torch

from saccade.kernels.scan import linear_recurrence, linear_recurrence_reference


@pytest.mark.parametrize("size", [0, 1, 2, 3, 8, 13, 31])
def test_equals_the_loop(size):
    decay = torch.rand(3, 5, size, dtype=torch.float64) * 2 - 1
    inputs = torch.randn(3, 5, size, dtype=torch.float64)
    torch.testing.assert_close(linear_recurrence(decay, inputs), linear_recurrence_reference(decay, inputs))


def test_decay_broadcasts():
    decay, inputs = torch.rand(7), torch.randn(3, 7)
    torch.testing.assert_close(linear_recurrence(decay, inputs), linear_recurrence_reference(decay, inputs))


def test_gradients_to_second_order():
    decay = torch.rand(2, 7, dtype=torch.float64, requires_grad=True)
    inputs = torch.randn(2, 7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(linear_recurrence, (decay, inputs))
    assert torch.autograd.gradgradcheck(linear_recurrence, (decay, inputs))


def test_gradients_equal_those_of_the_loop():
    decay = torch.rand(3, 11, dtype=torch.float64, requires_grad=True)
    inputs = torch.randn(3, 11, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(3, 11, dtype=torch.float64)
    fast = torch.autograd.grad((linear_recurrence(decay, inputs) * weight).sum(), (decay, inputs))
    slow = torch.autograd.grad((linear_recurrence_reference(decay, inputs) * weight).sum(), (decay, inputs))
    torch.testing.assert_close(fast, slow)


@pytest.mark.parametrize("decay_value", [0.0, 0.5, 1.0])
def test_long_and_saturated_rows_stay_exact(decay_value):
    # The clamped product form loses everything beyond a hundred keys or so; this one may not.
    size = 4099
    decay = torch.full((size,), decay_value, requires_grad=True)
    x = linear_recurrence(decay, torch.ones(size))
    expected = {0.0: 1.0, 0.5: 2.0, 1.0: float(size)}[decay_value]
    assert x[-1].item() == pytest.approx(expected, rel=1e-6)
    x.sum().backward()
    assert torch.isfinite(decay.grad).all()


def test_compiles():
    decay, inputs = torch.rand(3, 7), torch.randn(3, 7, requires_grad=True)
    compiled = torch.compile(linear_recurrence, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(decay, inputs), linear_recurrence_reference(decay, inputs))
    compiled(decay, inputs).sum().backward()
    assert inputs.grad is not None
