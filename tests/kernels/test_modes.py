"""Own kernels under whatever else PyTorch does with functions: fake tensors, make_fx, torch.func, torch.jit.trace."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx

from saccade.kernels.additive import additive_scores
from saccade.kernels.modes import visible
from saccade.kernels.scan import linear_recurrence
from saccade.selections.entmax import entmax
from saccade.selections.entmax15 import entmax15
from saccade.selections.fusedmax import fusedmax
from saccade.selections.sparsemax import sparsemax

MASK = torch.tensor([True, False, True, True, True])
KEYS, VECTOR = torch.randn(7, 5, dtype=torch.float64), torch.randn(5, dtype=torch.float64)
ALPHA = torch.tensor(1.3, dtype=torch.float64)

FUNCTIONS = {
    "additive": lambda x: additive_scores(x, KEYS, VECTOR),
    "scan": lambda x: linear_recurrence(x.sigmoid(), x),
    "sparsemax": lambda x: sparsemax(x, mask=MASK),
    "entmax15": lambda x: entmax15(x, mask=MASK),
    "entmax": lambda x: entmax(x, mask=MASK, alpha=ALPHA),
    "entmax with alpha": lambda x: entmax(x, alpha=1.0 + x[..., :1].exp()),
    "fusedmax": lambda x: fusedmax(x, mask=MASK),
}
every = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)


def inputs(*batch):
    return torch.randn(*batch, 3, 5, dtype=torch.float64)


def loss_of(function):
    def loss(x):
        y = function(x)
        return (y * torch.linspace(-1, 2, y.shape[-1], dtype=y.dtype)).sin().sum()

    return loss


@every
def test_gradients_of_torch_func_are_those_of_autograd(function):
    loss, x = loss_of(function), inputs().requires_grad_()
    (expected,) = torch.autograd.grad(loss(x), x)
    torch.testing.assert_close(torch.func.grad(loss)(x.detach()), expected)


@every
def test_second_derivatives(function):
    loss, x = loss_of(function), inputs()
    expected = torch.autograd.functional.hessian(loss, x)
    torch.testing.assert_close(torch.func.hessian(loss)(x), expected)
    torch.testing.assert_close(torch.func.jacrev(torch.func.grad(loss))(x), expected)


@every
def test_vmap_is_a_loop(function):
    xs = inputs(2)
    torch.testing.assert_close(torch.vmap(function)(xs), torch.stack([function(x) for x in xs]))
    torch.testing.assert_close(torch.vmap(function, in_dims=1)(xs), torch.stack([function(x) for x in xs.unbind(1)]))
    gradient = torch.func.grad(loss_of(function))
    torch.testing.assert_close(torch.vmap(gradient)(xs), torch.stack([gradient(x) for x in xs]))


def test_vmap_over_masks_of_fusedmax():
    x, masks = inputs(), torch.stack([MASK, MASK.flip(0)])
    expected = torch.stack([fusedmax(x, mask=mask) for mask in masks])
    torch.testing.assert_close(torch.vmap(lambda mask: fusedmax(x, mask=mask))(masks), expected)


@every
def test_forward_mode(function):
    x, tangent = inputs(), inputs()
    expected = torch.autograd.functional.jvp(function, x, tangent)[1]
    torch.testing.assert_close(torch.func.jvp(function, (x,), (tangent,))[1], expected)
    with forward_ad.dual_level():
        moved = forward_ad.unpack_dual(function(forward_ad.make_dual(x, tangent))).tangent
    torch.testing.assert_close(moved, expected)


@every
def test_fake_tensors_have_shapes_alone(function):
    expected = function(inputs())
    with FakeTensorMode(allow_non_fake_inputs=True):
        x = inputs()
        assert not visible(x)
        inside = function(x)
    for result in (inside, function(x)):
        assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
        assert type(result) is type(x)


@every
@pytest.mark.parametrize("mode", ["real", "fake"])
def test_make_fx_records_what_is_done(function, mode):
    graph = make_fx(function, tracing_mode=mode, _allow_non_fake_inputs=True)(inputs())
    x = inputs()
    torch.testing.assert_close(graph(x), function(x))


@every
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore:.*torch.jit.*:DeprecationWarning")
def test_traces_of_torch_jit(function):
    traced = torch.jit.trace(function, (inputs(),))
    x = inputs()
    torch.testing.assert_close(traced(x), function(x))
