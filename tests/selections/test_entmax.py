"""Alpha-entmax: its limits, its equation, parity, and the gradient of alpha."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from saccade.kernels.entmax import alpha_gradient
from saccade.selections.entmax import Entmax, entmax
from saccade.selections.entmax15 import entmax15
from saccade.selections.sparsemax import sparsemax

ALPHAS = [1.0, 1.0001, 1.03, 1.25, 1.5, 1.75, 2.0, 2.5, 4.0]


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_equation(alpha, scale):
    """On the support p^(alpha - 1) / (alpha - 1) is a score less a constant; off it the score is below that."""
    scores = torch.randn(7, 131, dtype=torch.float64) * scale
    weights = entmax(scores, alpha=torch.tensor(alpha, dtype=torch.float64))
    torch.testing.assert_close(weights.sum(-1), torch.ones(7, dtype=torch.float64))
    beta = alpha - 1
    for row, p in zip(scores, weights, strict=True):
        lifted = p.log() if beta == 0 else (p**beta - 1) / beta
        constants = (row - lifted)[p > 1e-12]
        torch.testing.assert_close(constants, constants[:1].expand_as(constants), rtol=1e-7, atol=1e-7)
        if beta > 0 and (p == 0).any():
            assert (row[p == 0] <= constants[0] - 1 / beta + 1e-7).all()


@pytest.mark.parametrize(("alpha", "special"), [(1.0, torch.softmax), (1.5, entmax15), (2.0, sparsemax)])
def test_known_alphas(alpha, special):
    scores = torch.randn(5, 11, dtype=torch.float64) * 2
    expected = special(scores, dim=-1)
    torch.testing.assert_close(entmax(scores, alpha=alpha), expected)
    torch.testing.assert_close(entmax(scores, alpha=torch.tensor(alpha)), expected)


@pytest.mark.parametrize("alpha", [1.125, 1.25, 1.75, 2.5])
@pytest.mark.parametrize("dim", [-1, 0])
def test_parity_with_the_entmax_package(alpha, dim):
    peer = pytest.importorskip("entmax").entmax_bisect
    ours = torch.randn(7, 11, dtype=torch.float64).requires_grad_()
    theirs = ours.detach().clone().requires_grad_()
    our_alpha = torch.tensor(alpha, dtype=torch.float64, requires_grad=True)
    shape = (7, 1) if dim == -1 else (1, 11)
    their_alpha = torch.full(shape, alpha, dtype=torch.float64, requires_grad=True)
    towards = torch.randn(7, 11, dtype=torch.float64)
    torch.testing.assert_close(entmax(ours, alpha=our_alpha, dim=dim), peer(theirs, their_alpha, dim=dim))
    entmax(ours, alpha=our_alpha, dim=dim).backward(towards)
    peer(theirs, their_alpha, dim=dim).backward(towards)
    torch.testing.assert_close(ours.grad, theirs.grad)
    torch.testing.assert_close(our_alpha.grad, their_alpha.grad.sum())


@pytest.mark.parametrize("masked", [False, True])
def test_gradcheck(masked):
    scores = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    alpha = torch.tensor([[1.001], [1.2], [1.5], [1.9], [2.3]], dtype=torch.float64, requires_grad=True)
    mask = torch.rand(5, 7) > 0.3 if masked else None
    assert gradcheck(lambda x, a: entmax(x, alpha=a, mask=mask), (scores, alpha))
    assert gradgradcheck(lambda x, a: entmax(x, alpha=a, mask=mask), (scores, alpha))


def test_gradient_of_alpha_at_softmax():
    """The limit p (E[log^2 p] - log^2 p) / 2, and nothing is lost on the way to it."""
    weights = torch.randn(3, 7, dtype=torch.float64).softmax(-1)
    towards = torch.randn(3, 7, dtype=torch.float64)
    square = weights.log().square()
    limit = (towards * weights * ((weights * square).sum(-1, keepdim=True) - square)).sum(-1, keepdim=True) / 2
    for beta in (0.0, 1e-12, 1e-7):
        ours = alpha_gradient(towards, weights, torch.tensor(beta, dtype=torch.float64))
        torch.testing.assert_close(ours, limit, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("alpha", [1.0, 1.3, 3.0])
def test_extremes_and_empty_rows(dtype, alpha):
    scores = torch.tensor([[1e4, -1e4, 0.0], [1e4, 1e4, -1e4], [0.0, 1.0, 2.0]], dtype=dtype, requires_grad=True)
    power = torch.tensor(alpha, requires_grad=True)
    mask = torch.tensor([[True], [True], [False]])
    weights = entmax(scores, alpha=power, mask=mask)
    torch.testing.assert_close(weights, torch.tensor([[1, 0, 0], [0.5, 0.5, 0], [0, 0, 0]], dtype=dtype))
    weights.square().sum().backward()
    assert scores.grad.isfinite().all()
    assert power.grad.isfinite()
    assert scores.grad[2].eq(0).all()


@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (3, 1)])
def test_small_axes(shape):
    torch.testing.assert_close(entmax(torch.randn(shape), alpha=torch.tensor(1.3)), torch.ones(shape))


def test_float32_alpha_from_one_to_two():
    scores = torch.randn(5, 1031)
    for alpha in (1.001, 1.2, 1.7, 2.0):
        right = entmax(scores.double(), alpha=torch.tensor(alpha, dtype=torch.float64))
        torch.testing.assert_close(entmax(scores, alpha=torch.tensor(alpha)).double(), right, rtol=1e-3, atol=2e-6)


def test_bad_alpha():
    with pytest.raises(ValueError, match=r"alpha must be 1 or more, got 0\.5"):
        entmax(torch.randn(3), alpha=0.5)
    with pytest.raises(ValueError, match=r"alpha must be 1 or more, got 0\.5"):
        entmax(torch.randn(3), alpha=torch.tensor(0.5))
    with pytest.raises(ValueError, match=r"alpha of shape \(3,\) does not broadcast"):
        entmax(torch.randn(2, 3), alpha=torch.full((3,), 1.5))
    with pytest.raises(ValueError, match="above 1"):
        Entmax(alpha=1.0)
    with pytest.raises(ValueError, match="num_heads"):
        Entmax(learn_alpha=False, num_heads=2)


@pytest.mark.parametrize("alpha", [1.01, 1.5, 2.0, 3.5])
def test_learned_alpha_starts_where_it_is_told_and_stays_above_one(alpha):
    selection = Entmax(alpha=alpha)
    torch.testing.assert_close(selection.alpha, torch.tensor(alpha))
    with torch.no_grad():
        selection.raw_alpha.fill_(-1e3)
    assert selection.alpha >= 1
    assert selection(torch.randn(2, 3, 5)).marginals.isfinite().all()


def test_alpha_learns_how_sparse_to_be():
    """Fitted to weights that sparsemax made, alpha comes to 2; to weights that softmax made, to 1."""
    scores = torch.randn(64, 1, 13)
    for target, alpha in ((sparsemax(scores), 2.0), (scores.softmax(-1), 1.0)):
        selection = Entmax()
        optimiser = torch.optim.Adam(selection.parameters(), lr=0.1)
        for _ in range(100):
            optimiser.zero_grad()
            (selection(scores).marginals - target).square().sum().backward()
            optimiser.step()
        assert abs(selection.alpha.item() - alpha) < 0.1


def test_one_alpha_for_each_head():
    selection = Entmax(num_heads=2)
    with torch.no_grad():
        selection.raw_alpha[1] = 2.0
    scores = torch.randn(3, 2, 5, 7)
    weights = selection(scores).marginals
    torch.testing.assert_close(weights[:, 0], entmax15(scores[:, 0]), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(
        weights[:, 1], entmax(scores[:, 1], alpha=selection.alpha[1].item()), rtol=1e-4, atol=1e-5
    )


def test_fixed_alpha_has_no_parameters():
    selection = Entmax(alpha=2.0, learn_alpha=False)
    assert not list(selection.parameters())
    scores = torch.randn(2, 3, 7)
    torch.testing.assert_close(selection(scores).marginals, sparsemax(scores))
