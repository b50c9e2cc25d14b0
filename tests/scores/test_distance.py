"""Negative distance, Gaussian kernel, elu kernel."""

import pytest
import torch
from torch.nn import functional as F

from saccade import Attention
from saccade.scores import KernelScore, NegativeDistanceScore, RBFKernelScore
from saccade.selections import Softmax

from .literal import assert_near, pair_by_pair, random_inputs


def test_negative_distance():
    query, keys = random_inputs(same_dim=True)
    expected = pair_by_pair(lambda q, k: -((q - k) ** 2).sum() / (2 * 1.7**2), query, keys)
    assert_near(NegativeDistanceScore(bandwidth=1.7)(query, keys), expected)


def test_negative_distance_keeps_its_digits_far_from_the_origin():
    offset = torch.randint(-5, 6, (3, 11)) / 4
    near = offset + 4096.0
    exact = -0.5 * (offset.unsqueeze(-2) - offset.unsqueeze(-3)).square().sum(-1)
    assert torch.equal(NegativeDistanceScore()(near, near).diagonal(), torch.zeros(3))
    torch.testing.assert_close(NegativeDistanceScore()(near, near), exact, rtol=1e-6, atol=0.0)


def test_negative_distance_at_distance_zero_has_gradient_zero():
    query = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    keys = query.detach().clone().requires_grad_()
    NegativeDistanceScore()(query, keys).diagonal().sum().backward()
    assert (query.grad == 0).all()
    assert (keys.grad == 0).all()


def test_negative_distance_is_at_most_zero_in_half_precision():
    query = torch.randn(3, 5).bfloat16() * 1e4
    scores = NegativeDistanceScore()(query, query + 1)
    assert scores.dtype == torch.bfloat16
    assert (scores <= 0).all()
    assert scores.isfinite().all()


def test_gradients_of_negative_distance():
    query, keys = random_inputs(same_dim=True)
    assert torch.autograd.gradcheck(NegativeDistanceScore(), (query.requires_grad_(), keys.requires_grad_()))


def test_rbf_kernel():
    query, keys = random_inputs(same_dim=True)
    expected = pair_by_pair(lambda q, k: torch.exp(-((q - k) ** 2).sum() / (2 * 2.3**2)), query, keys)
    assert_near(RBFKernelScore(bandwidth=2.3)(query, keys), expected)


def test_kernel():
    query, keys = random_inputs(same_dim=True)
    assert_near(KernelScore()(query, keys), pair_by_pair(lambda q, k: (F.elu(q) + 1) @ (F.elu(k) + 1), query, keys))


def test_kernel_features_stay_positive():
    query = torch.full((1, 3), -40.0, requires_grad=True)
    score = KernelScore()(query, torch.ones(1, 3))
    assert score.item() > 0
    score.sum().backward()
    assert (query.grad > 0).all()


def test_kernels_are_divided_by_their_sum():
    query, keys = random_inputs(same_dim=True)
    for score in (KernelScore(), RBFKernelScore(bandwidth=3.0)):
        raw = score(query, keys)
        weights = Attention(score=score)(query, keys).weights
        torch.testing.assert_close(weights, raw / raw.sum(-1, keepdim=True), rtol=1e-6, atol=1e-9)


def test_gaussian_kernel_and_softmax_of_distance_are_one():
    query, keys = random_inputs(same_dim=True)
    kernel = Attention(score=RBFKernelScore(bandwidth=3.0))(query, keys)
    distance = Attention(score=NegativeDistanceScore(bandwidth=3.0), selection=Softmax())(query, keys)
    torch.testing.assert_close(kernel.context, distance.context, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", [NegativeDistanceScore, RBFKernelScore])
@pytest.mark.parametrize("bandwidth", [0.0, -1.0, float("nan")])
def test_bandwidth_must_be_positive(kind, bandwidth):
    with pytest.raises(ValueError, match="bandwidth must be above 0"):
        kind(bandwidth=bandwidth)


@pytest.mark.parametrize("score", [KernelScore(), NegativeDistanceScore()], ids=lambda s: type(s).__name__)
def test_one_size(score):
    with pytest.raises(ValueError, match="needs queries and keys of the same size"):
        score(torch.randn(3, 5), torch.randn(7, 4))
