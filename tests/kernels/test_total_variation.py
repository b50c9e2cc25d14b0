"""The proximal operator of total variation, certified by its optimality conditions."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from saccade.kernels import total_variation
from saccade.kernels.total_variation import fuse, taut_string


@pytest.fixture(params=["native", "taut string"], autouse=True)
def path(request, monkeypatch):
    if request.param == "taut string":
        monkeypatch.setenv("SACCADE_NATIVE", "0")


def is_optimal(row, fused, strength):
    """Whether the dual variable, the running sum of row - fused, is feasible and at its bound wherever x jumps."""
    dual = (row - fused).cumsum(0)[:-1]
    jump = fused.diff()
    at_bound = -strength * jump.sign()
    return (
        bool((dual.abs() <= strength + 1e-9).all())
        and bool(((dual - at_bound).abs() < 1e-9)[jump.abs() > 1e-9].all())
        and abs((row - fused).sum().item()) < 1e-9
    )


@pytest.mark.parametrize("size", [1, 2, 3, 5, 37, 211])
@pytest.mark.parametrize("strength", [0.01, 0.1, 1.0, 10.0, 1e3])
def test_optimality(size, strength):
    rows = torch.randn(7, size, dtype=torch.float64)
    rows[3] = rows[3].round()  # ties
    fused = fuse(rows, None, strength)
    assert all(is_optimal(row, x, strength) for row, x in zip(rows, fused, strict=True))
    if strength == 1e3:
        torch.testing.assert_close(fused, rows.mean(-1, keepdim=True).expand_as(rows))


def test_golden():
    rows = torch.tensor([0.3, 0.5, 0.45, -0.2, 0.6], dtype=torch.float64)
    expected = torch.tensor([23 / 60, 23 / 60, 23 / 60, 0.0, 0.5], dtype=torch.float64)
    torch.testing.assert_close(fuse(rows, None, 0.1), expected)
    torch.testing.assert_close(torch.tensor(taut_string(rows.tolist(), 0.1), dtype=torch.float64), expected)


def test_masked_elements_are_taken_out_of_the_row():
    rows, mask = torch.randn(11, 23, dtype=torch.float64), torch.rand(11, 23) > 0.4
    mask[4], mask[5] = False, True
    garbage = torch.where(mask, rows, torch.nan)
    fused = fuse(garbage, mask, 0.3)
    assert fused.isfinite().all()
    for row, keep, x in zip(rows, mask, fused, strict=True):
        torch.testing.assert_close(x[keep], fuse(row[keep], None, 0.3))


def test_gradients():
    rows = torch.randn(3, 11, dtype=torch.float64, requires_grad=True)
    mask = torch.rand(3, 11) > 0.3
    mask[1] = False
    for keep in (None, mask):
        chosen = torch.ones(3, 11, dtype=torch.bool) if keep is None else keep

        def function(x, keep=keep, chosen=chosen):
            return fuse(x, keep, 0.4)[chosen]

        assert gradcheck(function, rows)
        assert gradgradcheck(function, rows)


def test_gradient_is_the_mean_over_each_run():
    rows = torch.tensor([0.3, 0.5, 0.45, -0.2, 0.6], dtype=torch.float64, requires_grad=True)
    (grad,) = torch.autograd.grad(fuse(rows, None, 0.1), rows, torch.tensor([1.0, 2, 6, 5, 7], dtype=torch.float64))
    torch.testing.assert_close(grad, torch.tensor([3.0, 3, 3, 5, 7], dtype=torch.float64))


@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (2, 3, 5), (7,), (4, 1)])
def test_shapes(shape):
    rows = torch.randn(shape, requires_grad=True)
    fused = fuse(rows, None, 0.1)
    assert fused.shape == shape
    fused.sum().backward()
    assert rows.grad.shape == shape


def test_operator_is_well_formed():
    rows = torch.randn(3, 17, dtype=torch.float64, requires_grad=True)
    torch.library.opcheck(total_variation.total_variation_prox, (rows, torch.rand(3, 17) > 0.4, 0.2))
