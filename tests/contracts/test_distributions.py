"""What holds for the distribution of every selection, against the enumeration of all outcomes."""

import itertools

import pytest
import torch

from saccade.selections import selections

from .members import SELECTIONS, build, covered, select

NAMES = covered(selections, SELECTIONS)
KEYS = 5
LENGTHS = torch.tensor([KEYS, 3, 1, 0])
MASK = torch.arange(KEYS) < LENGTHS[:, None, None]
OUTCOMES = torch.tensor(list(itertools.product([0.0, 1.0], repeat=KEYS)), dtype=torch.float64)

every_selection = pytest.mark.parametrize("name", NAMES)


@pytest.fixture
def distribution(name):
    generator = torch.Generator().manual_seed(7)
    scores = 0.7 * torch.randn(len(LENGTHS), 3, KEYS, generator=generator, dtype=torch.float64)
    return select(build(SELECTIONS[name]), scores, MASK)


@pytest.fixture
def log_probs(distribution):
    """(outcomes, batch, queries): of every subset of the keys, most of them impossible."""
    return distribution.log_prob(OUTCOMES[:, None, None, :].expand(-1, *distribution.marginals.shape))


@every_selection
def test_probabilities_of_all_outcomes_sum_to_one(log_probs):
    torch.testing.assert_close(log_probs.exp().sum(0), torch.ones(log_probs.shape[1:], dtype=torch.float64))


@every_selection
def test_marginals_are_those_of_the_outcomes(distribution, log_probs):
    expected = torch.einsum("obq,ok->bqk", log_probs.exp(), OUTCOMES)
    torch.testing.assert_close(distribution.marginals, expected)


@every_selection
def test_entropy_is_that_of_the_outcomes(distribution, log_probs):
    probs = log_probs.exp()
    expected = -torch.where(probs > 0, probs * log_probs, 0.0).sum(0)
    torch.testing.assert_close(distribution.entropy(), expected)


@every_selection
def test_mode_is_the_most_probable_outcome(distribution, log_probs):
    torch.testing.assert_close(distribution.log_prob(distribution.mode), log_probs.max(0).values)


@every_selection
def test_impossible_outcomes_have_no_probability(distribution, log_probs):
    outside = ((OUTCOMES[:, None, None, :] > 0) & ~distribution.support).any(-1)
    assert (log_probs[outside] == -torch.inf).all()
    assert (log_probs[:, LENGTHS == 0][1:] == -torch.inf).all()
    half = torch.full_like(distribution.marginals, 0.5)
    assert (distribution.log_prob(half) == -torch.inf).all()


@every_selection
def test_support_is_where_there_is_mass(distribution):
    assert distribution.support.dtype == torch.bool
    assert torch.equal(distribution.support, distribution.marginals > 0)
    assert not (distribution.support & ~MASK).any()


@every_selection
def test_mean_of_samples_is_the_marginals(distribution):
    torch.manual_seed(0)
    n = 4000
    samples = distribution.sample(n)
    p = distribution.marginals.detach()
    # Five standard deviations, and a little more where p is so small that no normal law holds.
    bound = 5 * (p * (1 - p) / n).sqrt() + 10 / n
    assert ((samples.mean(0) - p).abs() <= bound).all()
    assert torch.isin(samples, torch.tensor([0.0, 1.0], dtype=samples.dtype)).all()
    assert (samples[:, ~distribution.support] == 0).all()
    assert not samples.requires_grad
    assert (distribution.log_prob(samples) > -torch.inf).all()


@every_selection
def test_one_sample(distribution):
    sample = distribution.sample()
    assert sample.shape == distribution.marginals.shape
    assert sample.dtype == distribution.marginals.dtype
    assert (distribution.log_prob(sample) > -torch.inf).all()


@every_selection
def test_draw_of_evaluation_is_the_mode(name, distribution):
    assert distribution.draw is distribution.draw
    expected = distribution.marginals if name == "hard(expectation)" else distribution.mode
    torch.testing.assert_close(distribution.draw, expected, rtol=0, atol=0)


@every_selection
def test_parts_join(name):
    scores = torch.randn(2, 5, KEYS, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    selection = build(SELECTIONS[name])
    if selection.stateful:
        pytest.skip("parts depend on each other; see test_state_passed_on_is_all_at_once")
    whole = select(selection, scores)
    parts = [select(selection, scores[:, :2]), select(selection, scores[:, 2:3]), select(selection, scores[:, 3:])]
    joined = type(whole).cat(parts)
    torch.testing.assert_close(joined.marginals, whole.marginals)
    torch.testing.assert_close(joined.coefficients, whole.coefficients)
    torch.testing.assert_close(joined.entropy(), whole.entropy())
    torch.testing.assert_close(joined.mode, whole.mode)
    torch.testing.assert_close(joined.log_prob(whole.mode), whole.log_prob(whole.mode))
