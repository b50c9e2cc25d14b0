"""Every distribution against the enumeration of its outcomes."""

import itertools

import pytest
import torch

from saccade.distributions import Bernoulli, Categorical, Drawn

KEYS = 4
OUTCOMES = torch.tensor(list(itertools.product([0.0, 1.0], repeat=KEYS)), dtype=torch.float64)
LOGITS = torch.tensor([[1.0, -0.5, 0.3, 2.0], [0.0, 3.0, -1.0, 0.2]], dtype=torch.float64)
PROBS = torch.softmax(LOGITS, -1)

DISTRIBUTIONS = {
    "categorical": Categorical(PROBS),
    "categorical from logits": Categorical(PROBS, logits=LOGITS),
    "categorical with zeros": Categorical(torch.tensor([[0.25, 0, 0.75, 0], [0, 0, 0, 1.0]], dtype=torch.float64)),
    "defective": Categorical(PROBS * torch.tensor([[0.3], [0.9]]), defective=True),
    "defective, mostly nothing": Categorical(PROBS * 0.01, defective=True),
    "nothing": Categorical(torch.zeros(2, KEYS, dtype=torch.float64)),
    "nothing, defective": Categorical(torch.zeros(2, KEYS, dtype=torch.float64), defective=True),
    "drawn": Drawn(PROBS, logits=LOGITS, drawn=PROBS),
    "bernoulli": Bernoulli(torch.sigmoid(LOGITS)),
    "bernoulli from logits": Bernoulli(torch.sigmoid(LOGITS), logits=LOGITS),
    "bernoulli with sure positions": Bernoulli(torch.tensor([[0, 1, 0.3, 0], [1, 1, 0, 0.9]], dtype=torch.float64)),
}
each = pytest.mark.parametrize("distribution", DISTRIBUTIONS.values(), ids=DISTRIBUTIONS.keys())


def log_probs(distribution):
    return distribution.log_prob(OUTCOMES[:, None].expand(-1, 2, KEYS))


def enumerated(distribution):
    """(outcomes, 2): the probability of each outcome, from the definition."""
    p = distribution.marginals
    if isinstance(distribution, Bernoulli):
        return torch.stack([torch.where(z > 0, p, 1 - p).prod(-1) for z in OUTCOMES])
    rows = []
    for z in OUTCOMES:
        if z.sum() > 1:
            rows.append(torch.zeros(2, dtype=torch.float64))
        else:
            rows.append((p * z).sum(-1) if z.any() else (1 - p.sum(-1)).clamp(min=0))
    return torch.stack(rows)


@each
def test_log_prob(distribution):
    torch.testing.assert_close(log_probs(distribution).exp(), enumerated(distribution))


@each
def test_marginals(distribution):
    torch.testing.assert_close(distribution.marginals, torch.einsum("oq,ok->qk", enumerated(distribution), OUTCOMES))


@each
def test_entropy(distribution):
    p = enumerated(distribution)
    torch.testing.assert_close(distribution.entropy(), -torch.special.xlogy(p, p).sum(0))


@each
def test_mode(distribution):
    best = enumerated(distribution).max(0).values
    torch.testing.assert_close(distribution.log_prob(distribution.mode).exp(), best)


@each
def test_mean_of_samples(distribution):
    torch.manual_seed(0)
    n = 10_000
    samples = distribution.sample(n)
    p = distribution.marginals
    assert samples.shape == (n, 2, KEYS)
    assert ((samples.mean(0) - p).abs() <= 5 * (p * (1 - p) / n).sqrt() + 1e-12).all()


@each
def test_relaxed_outcomes_have_no_probability(distribution):
    assert (distribution.log_prob(torch.full((2, KEYS), 0.25, dtype=torch.float64)) == -torch.inf).all()


def test_gradient_of_log_prob():
    def log_prob(logits, kind, z):
        probs = torch.softmax(logits, -1) if kind is Categorical else torch.sigmoid(logits)
        return kind(probs, logits=logits).log_prob(z)

    logits = LOGITS.clone().requires_grad_()
    one, several = OUTCOMES[[1, 4]], OUTCOMES[[5, 11]]
    assert torch.autograd.gradcheck(lambda x: log_prob(x, Categorical, one), (logits,))
    assert torch.autograd.gradcheck(lambda x: log_prob(x, Bernoulli, several), (logits,))


@pytest.mark.parametrize("kind", [Categorical, Bernoulli])
def test_draw_stays_the_same_and_joins(kind):
    parts = [kind(torch.rand(3, 2, 5) / 5, training=True) for _ in range(3)]
    draws = [part.draw for part in parts]
    assert all(part.draw is draw for part, draw in zip(parts, draws, strict=True))
    joined = kind.cat(parts)
    assert joined.marginals.shape == (3, 6, 5)
    assert joined.training
    torch.testing.assert_close(joined.draw, torch.cat(draws, dim=-2))


def test_draw_is_the_mode_in_evaluation():
    distribution = Bernoulli(torch.rand(3, 5))
    assert torch.equal(distribution.draw, distribution.mode)


@pytest.mark.parametrize("kind", [Bernoulli, Categorical])
def test_samples_on_a_new_axis_also_if_there_are_none(kind):
    distribution = kind(torch.full((2, 3, 5), 0.2))
    assert distribution.sample().shape == (2, 3, 5)
    for n in (0, 1, 7):
        assert distribution.sample(n).shape == (n, 2, 3, 5)
    assert kind(torch.zeros(0, 3, 5)).sample(7).shape == (7, 0, 3, 5)
