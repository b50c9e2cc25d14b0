"""Sigmoid, normalised sigmoid and ReLU-normalised selections."""

import pytest
import torch

from saccade import Attention
from saccade.distributions import Bernoulli, Categorical
from saccade.scores import DotScore
from saccade.selections import NormalizedSigmoid, ReLUNormalized, Sigmoid

SCORES = torch.tensor([[-2.0, 0.0, 0.5], [3.0, -1.0, 1.0]], dtype=torch.float64)


def test_sigmoid_is_independent_of_other_keys():
    distribution = Sigmoid(temperature=0.5)(SCORES)
    assert isinstance(distribution, Bernoulli)
    torch.testing.assert_close(distribution.marginals, 1 / (1 + torch.exp(-SCORES / 0.5)))
    torch.testing.assert_close(distribution.mode, torch.tensor([[0, 1, 1], [1, 0, 1]], dtype=torch.float64))


def test_log_prob_of_saturated_sigmoids_keeps_its_gradient():
    scores = torch.tensor([[40.0, -40.0]], requires_grad=True)
    surprising = torch.tensor([[0.0, 1.0]])
    log_prob = Sigmoid()(scores).log_prob(surprising)
    assert log_prob.item() == pytest.approx(-80.0)
    log_prob.sum().backward()
    torch.testing.assert_close(scores.grad, torch.tensor([[-1.0, 1.0]]))


def test_normalized_sigmoid():
    expected = [[s / sum(row) for s in row] for row in torch.sigmoid(SCORES).tolist()]
    distribution = NormalizedSigmoid()(SCORES)
    assert isinstance(distribution, Categorical)
    torch.testing.assert_close(distribution.marginals, torch.tensor(expected, dtype=torch.float64))


def test_normalized_sigmoid_of_very_low_scores_is_their_softmax():
    scores = torch.tensor([[-1e4, -1e4 + 1.0, -1e4 - 2.0]])
    torch.testing.assert_close(NormalizedSigmoid()(scores).marginals, torch.softmax(scores, -1))


def test_normalized_sigmoid_saturates():
    weights = NormalizedSigmoid()(torch.tensor([[50.0, 90.0, 70.0, -90.0]])).marginals
    torch.testing.assert_close(weights, torch.tensor([[1 / 3, 1 / 3, 1 / 3, 0.0]]))


def test_relu_normalized():
    weights = ReLUNormalized()(SCORES).marginals
    expected = torch.tensor([[0.0, 0.0, 1.0], [0.75, 0.0, 0.25]], dtype=torch.float64)
    torch.testing.assert_close(weights, expected)


def test_relu_normalized_of_kernels_divides_by_their_sum():
    kernels = torch.rand(3, 5, 7)
    torch.testing.assert_close(ReLUNormalized()(kernels).marginals, kernels / kernels.sum(-1, keepdim=True))


def test_relu_normalized_without_positive_scores_picks_nothing():
    scores = torch.tensor([[-1.0, 0.0, -3.0]], requires_grad=True)
    distribution = ReLUNormalized()(scores)
    assert (distribution.marginals == 0).all()
    assert (distribution.sample() == 0).all()
    distribution.marginals.sum().backward()
    assert (scores.grad == 0).all()


def test_relu_normalized_does_not_overflow_in_half_precision():
    weights = ReLUNormalized()(torch.full((1, 8), 6e4, dtype=torch.float16)).marginals
    assert (weights == 0.125).all()


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_temperature_is_checked(temperature):
    with pytest.raises(ValueError, match=f"temperature must be above 0, got {temperature}"):
        Sigmoid(temperature=temperature)


def test_sigmoid_with_a_mass_reads_a_mean():
    keys = torch.randn(2, 5, 3, dtype=torch.float64)
    attention = Attention(score=DotScore(), selection=Sigmoid(mass=2.0))
    reading = attention(keys[:, :1], keys)
    p = torch.sigmoid(keys[:, :1] @ keys.mT)
    torch.testing.assert_close(reading.weights, p)
    torch.testing.assert_close(reading.context, 2 * (p @ keys) / p.sum(-1, keepdim=True))
    with pytest.raises(ValueError, match="mass must be above 0"):
        Sigmoid(mass=0.0)
