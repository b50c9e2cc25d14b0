"""Coverage, linguistic coverage, neural coverage."""

import pytest
import torch

from saccade.history import Coverage, LinguisticCoverage, LocalFertility, NeuralCoverage


def steps(*shape):
    return torch.softmax(torch.randn(*shape, dtype=torch.float64), -1)


def test_coverage_is_the_sum_of_what_was_read():
    weights = steps(5, 2, 3, 1, 7)  # five steps, two batch dimensions
    feature = Coverage()
    kept = feature.prepare(torch.randn(2, 3, 7, 11, dtype=torch.float64))
    query = torch.randn(2, 3, 1, 13, dtype=torch.float64)
    state = feature.begin(query, kept)
    assert (feature.features(state, query, kept) == 0).all()
    for i in range(5):
        state = feature.advance(state, weights[i], query, kept)
        seen = feature.features(state, query, kept)
        assert seen.shape == (2, 3, 7, feature.feature_dim)
        torch.testing.assert_close(seen.squeeze(-1), weights[: i + 1].sum(0).squeeze(-2))


def test_states_are_not_changed():
    feature = Coverage()
    kept = feature.prepare(torch.randn(7, 11))
    query = torch.randn(1, 13)
    state = feature.begin(query, kept)
    feature.advance(state, torch.full((1, 7), 0.5), query, kept)
    assert (state.coverage == 0).all()
    with pytest.raises(AttributeError):
        state.coverage = torch.ones(7, 1)


def test_fertility_lies_between_its_bounds():
    feature = LinguisticCoverage(key_dim=1, max_fertility=3.0)
    torch.nn.init.ones_(feature.fertility_proj.weight)
    fertility = feature.prepare(torch.tensor([[-100.0], [0.0], [100.0]]))
    torch.testing.assert_close(fertility, torch.tensor([[0.05], [1.5], [3.0]]))


def test_a_key_read_up_to_its_fertility_is_covered():
    feature = LinguisticCoverage(key_dim=1, max_fertility=2.0)
    torch.nn.init.zeros_(feature.fertility_proj.weight)  # fertility one
    kept = feature.prepare(torch.zeros(3, 1))
    query = torch.zeros(1, 1)
    state = feature.begin(query, kept)
    for key in (0, 1, 1):
        state = feature.advance(state, torch.eye(3)[key : key + 1], query, kept)
    torch.testing.assert_close(feature.features(state, query, kept), torch.tensor([[1.0], [2.0], [0.0]]))


def test_neural_coverage_stays_within_the_range_of_tanh():
    feature = NeuralCoverage(query_dim=5, key_dim=11, feature_dim=3)
    kept = feature.prepare(100 * torch.randn(2, 7, 11))
    query = torch.randn(2, 1, 5)
    state = feature.begin(query, kept)
    for _ in range(20):
        state = feature.advance(state, steps(2, 1, 7).float(), query, kept)
    assert state.coverage.shape == (2, 7, 3)
    assert (state.coverage.abs() <= 1).all()
    assert state.coverage.abs().max() > 0.1


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"max_fertility must be above 0.05, got 0.0"):
        LinguisticCoverage(key_dim=3, max_fertility=0.0)
    with pytest.raises(ValueError, match="feature_dim must be 1 or more, got 0"):
        NeuralCoverage(query_dim=3, key_dim=3, feature_dim=0)


@pytest.mark.parametrize("feature", [Coverage(), LocalFertility()])
def test_sums_go_on_in_half_precision(feature):
    kept = feature.prepare(torch.randn(3, 11, dtype=torch.bfloat16))
    query = torch.randn(1, 13, dtype=torch.bfloat16)
    state = feature.begin(query, kept)
    for _ in range(2000):  # a sum in bfloat16 stays at 2
        state = feature.advance(state, torch.full((1, 3), 2**-8, dtype=torch.bfloat16), query, kept)
    seen = feature.features(state, query, kept)
    assert seen.dtype == torch.bfloat16
    torch.testing.assert_close(seen[1, feature.feature_dim // 2].float(), torch.tensor(2000 / 256), atol=0.05, rtol=0)
