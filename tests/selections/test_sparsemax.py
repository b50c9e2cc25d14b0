"""Sparsemax and entmax-1.5: golden numbers, parity, gradients, masks, axes and bad input."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from saccade.selections.entmax15 import Entmax15, entmax15
from saccade.selections.sparsemax import Sparsemax, sparsemax

BOTH = pytest.mark.parametrize("function", [sparsemax, entmax15])


@pytest.fixture(params=["native", "plain"], autouse=True)
def path(request, monkeypatch):
    if request.param == "plain":
        monkeypatch.setenv("SACCADE_NATIVE", "0")


@pytest.mark.parametrize(
    ("function", "scores", "weights"),
    [
        (sparsemax, [-2, 0, 0.5], [0, 0.25, 0.75]),
        (entmax15, [-2, 0, 0.5], [0, 0.3260, 0.6740]),
        (sparsemax, [1, 0.8, 0.1, -1], [0.6, 0.4, 0, 0]),
        (entmax15, [1, 0.8, 0.1, -1], [0.529248, 0.393749, 0.077003, 0]),
    ],
)
def test_golden(function, scores, weights):
    ours = function(torch.tensor(scores, dtype=torch.float64))
    torch.testing.assert_close(ours, torch.tensor(weights, dtype=torch.float64), rtol=0, atol=5e-5)


def test_sparsemax_is_the_nearest_point_of_the_simplex():
    scores = torch.randn(5, 7, dtype=torch.float64)
    ours = (sparsemax(scores) - scores).square().sum(-1)
    others = torch.distributions.Dirichlet(torch.ones(7, dtype=torch.float64)).sample((3001, 5))
    assert (ours <= (others - scores).square().sum(-1).amin(0)).all()


@BOTH
@pytest.mark.parametrize("dim", [-1, 0, 1])
def test_parity_with_the_entmax_package(function, dim):
    peer = getattr(pytest.importorskip("entmax"), function.__name__)
    ours = (torch.randn(7, 11, 13, dtype=torch.float64) * 3).requires_grad_()
    theirs = ours.detach().clone().requires_grad_()
    towards = torch.randn(7, 11, 13, dtype=torch.float64)
    torch.testing.assert_close(function(ours, dim=dim), peer(theirs, dim=dim))
    function(ours, dim=dim).backward(towards)
    peer(theirs, dim=dim).backward(towards)
    torch.testing.assert_close(ours.grad, theirs.grad)


@BOTH
@pytest.mark.parametrize("masked", [False, True])
def test_gradcheck(function, masked):
    scores = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    mask = torch.rand(5, 7) > 0.4 if masked else None
    assert gradcheck(lambda x: function(x, mask=mask), scores)
    assert gradgradcheck(lambda x: function(x, mask=mask), scores)


@BOTH
def test_masked_is_removed(function):
    scores, mask = torch.randn(3, 5, 11, dtype=torch.float64), torch.rand(3, 1, 11) > 0.4
    mask[1] = False
    weights = function(scores, mask=mask)
    assert weights[1].eq(0).all()
    for row, keep in ((0, mask[0, 0]), (2, mask[2, 0])):
        assert weights[row, :, ~keep].eq(0).all()
        torch.testing.assert_close(weights[row][:, keep], function(scores[row][:, keep]))


@BOTH
def test_axes_and_layouts(function):
    scores, mask = torch.randn(5, 7, 3), torch.rand(5, 7, 3) > 0.3
    expected = function(scores.movedim(1, -1).contiguous(), mask=mask.movedim(1, -1)).movedim(-1, 1)
    torch.testing.assert_close(function(scores, dim=1, mask=mask), expected)
    torch.testing.assert_close(function(scores, dim=-2, mask=mask), expected)
    torch.testing.assert_close(function(scores.mT), function(scores.mT.contiguous()))
    assert function(torch.randn(7)).shape == (7,)


@BOTH
@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (3, 1)])
def test_small_axes(function, shape):
    scores = torch.randn(shape, requires_grad=True)
    weights = function(scores)
    torch.testing.assert_close(weights, torch.ones(shape))
    weights.sum().backward()
    torch.testing.assert_close(scores.grad, torch.zeros(shape))


@BOTH
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_extremes(function, dtype):
    scores = torch.tensor([[1e4, -1e4, 0.0], [1e4, 1e4, -1e4], [-1e4, -1e4, -1e4]], dtype=dtype, requires_grad=True)
    weights = function(scores)
    expected = torch.tensor([[1, 0, 0], [0.5, 0.5, 0], [1 / 3, 1 / 3, 1 / 3]], dtype=dtype)
    torch.testing.assert_close(weights, expected)
    weights.square().sum().backward()
    assert scores.grad.isfinite().all()


@BOTH
@pytest.mark.parametrize("wrong", [torch.nan, torch.inf, -torch.inf])
def test_scores_that_are_not_finite_are_refused_by_place(function, wrong):
    scores = torch.randn(3, 7)
    scores[1, 4] = wrong
    with pytest.raises(ValueError, match=r"finite .* \(1, 4\)"):
        function(scores)
    with pytest.raises(ValueError, match=r"finite .* \(1, 4\)"):
        function(scores, dim=0)


@BOTH
def test_masks_of_the_wrong_kind_are_refused(function):
    with pytest.raises(TypeError, match="bool"):
        function(torch.randn(3, 7), mask=torch.ones(3, 7))
    with pytest.raises(ValueError, match="broadcast"):
        function(torch.randn(3, 7), mask=torch.ones(5, dtype=torch.bool))


@pytest.mark.parametrize(("module", "function"), [(Sparsemax, sparsemax), (Entmax15, entmax15)])
def test_selection(module, function):
    scores, mask = torch.randn(2, 3, 7), torch.rand(2, 3, 7) > 0.3
    distribution = module()(scores, mask)
    torch.testing.assert_close(distribution.marginals, function(scores, mask=mask))
    torch.testing.assert_close(module()(scores).marginals, function(scores))
    assert (distribution.support == (distribution.marginals > 0)).all()
