"""Fusedmax: golden numbers, limits, masks and gradients (tests/kernels/test_total_variation.py certifies the prox)."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from saccade.selections.fusedmax import Fusedmax, fusedmax
from saccade.selections.sparsemax import sparsemax


@pytest.mark.parametrize(
    ("scores", "weights"),
    [
        ([1, 2.1, 1.9], [0, 0.5, 0.5]),
        ([0.3, 0.5, 0.45, -0.2, 0.6], [0.22083, 0.22083, 0.22083, 0, 0.3375]),
    ],
)
def test_golden(scores, weights):
    ours = fusedmax(torch.tensor(scores, dtype=torch.float64), strength=0.1)
    torch.testing.assert_close(ours, torch.tensor(weights, dtype=torch.float64), rtol=0, atol=5e-6)


def test_limits():
    scores = torch.randn(3, 11)
    torch.testing.assert_close(fusedmax(scores, strength=0.0), sparsemax(scores))
    torch.testing.assert_close(fusedmax(scores, strength=1e3), torch.full((3, 11), 1 / 11))


def test_masked_keys_are_no_neighbours():
    scores, mask = torch.randn(3, 5, 17), torch.rand(3, 1, 17) > 0.4
    mask[1] = False
    weights = fusedmax(torch.where(mask, scores, torch.nan), strength=0.3, mask=mask)
    assert weights[1].eq(0).all()
    for row, keep in ((0, mask[0, 0]), (2, mask[2, 0])):
        assert weights[row][:, ~keep].eq(0).all()
        torch.testing.assert_close(weights[row][:, keep], fusedmax(scores[row][:, keep], strength=0.3))


def test_axes():
    scores, mask = torch.randn(5, 7, 3), torch.rand(5, 7, 3) > 0.3
    expected = fusedmax(scores.movedim(1, -1), mask=mask.movedim(1, -1)).movedim(-1, 1)
    torch.testing.assert_close(fusedmax(scores, dim=1, mask=mask), expected)


@pytest.mark.parametrize("masked", [False, True])
def test_gradcheck(masked):
    scores = torch.randn(3, 7, dtype=torch.float64, requires_grad=True)
    mask = torch.rand(3, 7) > 0.3 if masked else None
    assert gradcheck(lambda x: fusedmax(x, strength=0.2, mask=mask), scores)
    assert gradgradcheck(lambda x: fusedmax(x, strength=0.2, mask=mask), scores)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_extremes(dtype):
    scores = torch.tensor([[1e4, -1e4, 0.0], [1e4, 1e4, -1e4]], dtype=dtype, requires_grad=True)
    weights = fusedmax(scores)
    torch.testing.assert_close(weights, torch.tensor([[1, 0, 0], [0.5, 0.5, 0]], dtype=dtype))
    weights.square().sum().backward()
    assert scores.grad.isfinite().all()


def test_bad_input():
    with pytest.raises(ValueError, match="strength must be 0 or more, got -1"):
        fusedmax(torch.randn(3), strength=-1.0)
    with pytest.raises(ValueError, match="strength must be 0 or more, got -1"):
        Fusedmax(strength=-1.0)
    with pytest.raises(ValueError, match=r"finite .* \(1,\)"):
        fusedmax(torch.tensor([0.0, torch.nan]))


def test_selection_and_compiled():
    scores, mask = torch.randn(2, 3, 7), torch.rand(2, 3, 7) > 0.3
    selection = Fusedmax(strength=0.2)
    expected = fusedmax(scores, strength=0.2, mask=mask)
    torch.testing.assert_close(selection(scores, mask).marginals, expected)
    compiled = torch.compile(lambda x: fusedmax(x, strength=0.2, mask=mask), backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(scores), expected)
