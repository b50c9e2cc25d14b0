"""The same numbers as the `entmax` package."""

import pytest
import torch

from saccade.selections import Entmax, Entmax15, Sparsemax, entmax, entmax15, sparsemax

peer = pytest.importorskip("entmax", reason="the peer `entmax` is not installed")

ROWS, KEYS = 11, 37
MAPPINGS = {
    "sparsemax": (sparsemax, lambda x, dim: peer.sparsemax(x, dim=dim)),
    "entmax15": (entmax15, lambda x, dim: peer.entmax15(x, dim=dim)),
    "entmax 1.2": (
        lambda x, dim: entmax(x, alpha=1.2, dim=dim),
        lambda x, dim: peer.entmax_bisect(x, alpha=1.2, dim=dim, n_iter=100),
    ),
    "entmax 3": (
        lambda x, dim: entmax(x, alpha=3.0, dim=dim),
        lambda x, dim: peer.entmax_bisect(x, alpha=3.0, dim=dim, n_iter=100),
    ),
}


@pytest.mark.parametrize("name", MAPPINGS)
@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("dim", [-1, 0, 1])
def test_values_and_gradients(name, scale, dim):
    ours, theirs = MAPPINGS[name]
    scores = (scale * torch.randn(3, ROWS, KEYS).double()).requires_grad_()
    mine, expected = ours(scores, dim=dim), theirs(scores, dim)
    torch.testing.assert_close(mine, expected, rtol=1e-7, atol=1e-9)
    towards = torch.randn_like(expected)
    torch.testing.assert_close(
        torch.autograd.grad(mine, scores, towards),
        torch.autograd.grad(expected, scores, towards),
        rtol=1e-5,
        atol=1e-7,
    )


@pytest.mark.parametrize("name", MAPPINGS)
def test_masked_is_minus_infinity(name):
    _, theirs = MAPPINGS[name]
    scores = torch.randn(ROWS, KEYS).double()
    mask = torch.rand(ROWS, KEYS) > 0.4
    mask[:, 3] = True
    if name.startswith("entmax "):
        mine = entmax(scores, alpha=float(name.split()[1]), mask=mask)
    else:
        mine = {"sparsemax": sparsemax, "entmax15": entmax15}[name](scores, mask=mask)
    lowest = scores.masked_fill(~mask, -1e8)
    torch.testing.assert_close(mine, theirs(lowest, -1), rtol=1e-7, atol=1e-9)


def test_ties():
    scores = torch.tensor([[1.0, 1.0, 0.5, 0.5, 0.5, -3.0], [2.0, 2.0, 2.0, 2.0, 2.0, 2.0]]).double()
    for ours, theirs in MAPPINGS.values():
        torch.testing.assert_close(ours(scores, dim=-1), theirs(scores, -1), rtol=1e-7, atol=1e-9)


def test_learned_alpha_has_the_same_gradient():
    scores = torch.randn(ROWS, KEYS).double()
    alpha = torch.tensor(1.37).double().requires_grad_()
    towards = torch.randn(ROWS, KEYS).double()
    mine = entmax(scores, alpha=alpha)
    theirs = peer.entmax_bisect(scores, alpha=alpha, n_iter=100)
    torch.testing.assert_close(mine, theirs, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(
        torch.autograd.grad(mine, alpha, towards), torch.autograd.grad(theirs, alpha, towards), rtol=1e-5, atol=1e-8
    )


def test_modules_are_the_functions():
    scores = torch.randn(2, ROWS, KEYS).double()
    torch.testing.assert_close(Sparsemax()(scores).marginals, peer.sparsemax(scores, dim=-1))
    torch.testing.assert_close(Entmax15()(scores).marginals, peer.entmax15(scores, dim=-1))
    fixed = Entmax(alpha=1.2, learn_alpha=False)(scores).marginals
    torch.testing.assert_close(fixed, peer.entmax_bisect(scores, alpha=1.2, n_iter=100), rtol=1e-7, atol=1e-9)


def test_single_precision():
    scores = torch.randn(ROWS, KEYS)
    torch.testing.assert_close(sparsemax(scores), peer.sparsemax(scores, dim=-1))
    torch.testing.assert_close(entmax15(scores), peer.entmax15(scores, dim=-1), rtol=1e-4, atol=1e-6)
