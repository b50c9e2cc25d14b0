"""Convolved weights, Markov, local fertility, positions."""

import math

import pytest
import torch

from saccade.history import ConvolvedWeights, LocalFertility, Markov, PositionFeature
from saccade.history.neighbours import neighbours

MASK = torch.tensor([[True] * 4 + [False] * 3, [False, False] + [True] * 5, [False] * 7])


def begin(feature, mask=None, batch=(3,), keys=7):
    kept = feature.prepare(torch.randn(*batch, keys, 11))
    query = torch.randn(*batch, 1, 5)
    return feature.begin(query, kept, mask), query, kept


def test_neighbours():
    weights = torch.tensor([[0.1, 0.2, 0.7]])
    expected = torch.tensor([[0.0, 0.1, 0.2], [0.1, 0.2, 0.7], [0.2, 0.7, 0.0]])
    assert torch.equal(neighbours(weights), expected)
    assert neighbours(torch.zeros(2, 1, 0)).shape == (2, 0, 3)


def test_convolution_starts_at_the_first_attendable_key():
    state, _, _ = begin(ConvolvedWeights(width=3), MASK)
    expected = torch.zeros(3, 1, 7)
    expected[0, 0, 0] = expected[1, 0, 2] = 1.0
    assert torch.equal(state.weights, expected)


def test_a_filter_of_ones_counts_what_lies_under_it():
    feature = ConvolvedWeights(num_filters=2, width=3)
    torch.nn.init.ones_(feature.conv.weight)
    state, query, kept = begin(feature)
    weights = torch.softmax(torch.randn(3, 1, 7), -1)
    seen = feature.features(feature.advance(state, weights, query, kept), query, kept)
    assert seen.shape == (3, 7, 2)
    for channel in range(2):
        torch.testing.assert_close(seen[..., channel], neighbours(weights).sum(-1))


def test_a_filter_may_be_wider_than_the_keys():
    state, query, kept = begin(ConvolvedWeights(num_filters=2, width=201), batch=(), keys=1)
    feature = ConvolvedWeights(num_filters=2, width=201)
    torch.testing.assert_close(feature.features(state, query, kept), feature.conv.weight[:, 0, 100].unsqueeze(0))


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)], ids=len)
def test_no_keys(batch):
    for feature in (ConvolvedWeights(num_filters=2, width=3), Markov(), LocalFertility(), PositionFeature()):
        state, query, kept = begin(feature, batch=batch, keys=0)
        assert feature.features(state, query, kept).shape == (*batch, 0, feature.feature_dim)


def test_markov_forgets_and_fertility_adds():
    first, second = torch.softmax(torch.randn(2, 3, 1, 7), -1)
    for feature, expected in ((Markov(), second), (LocalFertility(), first + second)):
        state, query, kept = begin(feature)
        assert (feature.features(state, query, kept) == 0).all()
        for weights in (first, second):
            state = feature.advance(state, weights, query, kept)
        torch.testing.assert_close(feature.features(state, query, kept), neighbours(expected))


def test_positions_count_attendable_keys():
    feature = PositionFeature()
    state, query, kept = begin(feature, MASK)
    for step in range(4):
        seen = feature.features(state, query, kept)
        for row, length in enumerate((4, 5, 0)):
            places = MASK[row].nonzero()[:, 0].tolist()
            assert len(places) == length
            for j, place in enumerate(places):
                expected = [math.log(1 + step), math.log(1 + j), math.log(1 + length)]
                assert seen[row, place].tolist() == pytest.approx(expected, rel=1e-6)
        state = feature.advance(state, torch.zeros(3, 1, 7), query, kept)


def test_positions_do_not_stop_counting_in_half_precision():
    feature = PositionFeature()
    kept = feature.prepare(torch.zeros(1001, 3).bfloat16())
    state = feature.begin(torch.zeros(1, 3), kept)
    for _ in range(300):
        state = feature.advance(state, torch.zeros(1, 1001), torch.zeros(1, 3), kept)
    seen = feature.features(state, torch.zeros(1, 3), kept)
    assert seen.dtype == torch.bfloat16
    assert state.step.item() == 300
    torch.testing.assert_close(seen[:, 1].float(), torch.arange(1001).float().log1p(), rtol=2**-8, atol=0.0)


@pytest.mark.parametrize("width", [0, 4, -3])
def test_width_must_be_odd(width):
    with pytest.raises(ValueError, match=f"width must be an odd number, got {width}"):
        ConvolvedWeights(width=width)


def test_filters_must_be_some():
    with pytest.raises(ValueError, match="num_filters must be 1 or more, got 0"):
        ConvolvedWeights(num_filters=0)
