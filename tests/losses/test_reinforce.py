import itertools
import math

import pytest
import torch

from saccade import Attention
from saccade.aggregations import Sample
from saccade.distributions import Categorical, Drawn
from saccade.losses import reinforce_loss
from saccade.scores import DotScore
from saccade.selections import Softmax
from saccade.selections.hard import Hard

STEPS, KEYS, DIM, WORDS = 2, 3, 5, 7


def one_hot(positions):
    return torch.eye(KEYS, dtype=torch.float64)[list(positions)]


def with_draw(selection, draw):
    """The selection as it is after the reading that drew `draw`."""
    return Drawn(selection.probs, logits=selection.logits, drawn=draw)


class Captioner:
    """Two steps of hard attention; the words of a step depend on what both steps have read."""

    def __init__(self, *, masked=False):
        generator = torch.Generator().manual_seed(1)

        def random(*shape):
            return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()

        self.query, self.keys, self.out = random(STEPS, DIM), random(KEYS, DIM), random(WORDS, DIM)
        self.parameters = [self.query, self.keys, self.out]
        self.gold = torch.tensor([4, 1])
        self.mask = torch.tensor([[True, True, False], [True, True, True]]) if masked else None
        self.attention = Attention(score=DotScore(), selection=Softmax(), aggregation=Sample())

    def selection(self):
        return self.attention(self.query, self.keys, mask=self.mask).selection

    def log_likelihood(self, draw):
        contexts = (draw @ self.keys).cumsum(0)
        return torch.log_softmax(contexts @ self.out.T, -1).gather(-1, self.gold[:, None]).sum()

    def enumerate(self):
        """(draw, probability) of everything that hard attention may pick."""
        selection = self.selection()
        for positions in itertools.product(range(KEYS), repeat=STEPS):
            draw = one_hot(positions)
            probability = selection.log_prob(draw).sum().exp()
            if probability > 0:
                yield draw, probability


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("baseline", [0.0, -3.7])
def test_mean_over_all_samples_is_the_exact_gradient_of_the_bound(masked, baseline):
    model = Captioner(masked=masked)
    draws = list(model.enumerate())
    assert len(draws) == (6 if masked else 9)
    bound = sum(p * model.log_likelihood(draw) for draw, p in draws)
    exact = torch.autograd.grad(bound, model.parameters)

    mean = [torch.zeros_like(p) for p in model.parameters]
    for draw, probability in draws:
        selection = with_draw(model.selection(), draw)
        loss, _ = reinforce_loss(selection, model.log_likelihood(draw), baseline)
        for total, gradient in zip(mean, torch.autograd.grad(loss, model.parameters), strict=True):
            total -= probability.detach() * gradient
    torch.testing.assert_close(mean, list(exact))

    marginal = sum(p * model.log_likelihood(draw).exp() for draw, p in draws).log()
    assert bound < marginal


def test_terms_are_weighted_as_in_the_paper():
    model = Captioner()
    draw = one_hot([2, 0])
    selection = with_draw(model.selection(), draw)
    likelihood = model.log_likelihood(draw)
    loss, after = reinforce_loss(selection, likelihood, -2.0, reward_weight=0.1, entropy_weight=0.002)
    gradients = torch.autograd.grad(loss, model.parameters, retain_graph=True)

    weights = torch.softmax(model.query @ model.keys.T, -1)
    advantage = likelihood.item() + 2.0
    score, entropy = (weights * draw).sum(-1).log().sum(), -(weights * weights.log()).sum()
    expected = torch.autograd.grad(likelihood + 0.1 * advantage * score + 0.002 * entropy, model.parameters)
    torch.testing.assert_close(gradients, tuple(-gradient for gradient in expected))
    assert after.item() == pytest.approx(0.9 * -2.0 + 0.1 * likelihood.item())
    assert not after.requires_grad


def test_baseline_begins_with_the_first_batch_and_moves():
    probs = torch.full((3, STEPS, KEYS), 1 / KEYS)
    selection = with_draw(Categorical(probs), one_hot([0, 1]).float().expand(3, -1, -1))
    first, second = torch.tensor([-1.0, -2.0, -6.0]), torch.tensor([-1.0, -1.0, -1.0])
    _, baseline = reinforce_loss(selection, first)
    assert baseline.item() == pytest.approx(-3.0)
    loss, moved = reinforce_loss(selection, second, baseline)
    assert moved.item() == pytest.approx(0.9 * -3.0 + 0.1 * -1.0)
    assert baseline.item() == pytest.approx(-3.0)
    assert loss.item() == pytest.approx(1.0 - 2.0 * 2 * math.log(1 / KEYS))
    assert reinforce_loss(selection, second, baseline, decay=0.5)[1].item() == pytest.approx(-2.0)


def test_expectations_and_padding_add_no_score_function_term():
    scores = torch.randn(1, 3, KEYS, dtype=torch.float64, requires_grad=True)
    weights = torch.softmax(scores, -1)
    draw = torch.stack([one_hot([1])[0], weights[0, 1], one_hot([2])[0]]).unsqueeze(0)
    selection = with_draw(Categorical(weights, logits=scores), draw)
    valid = torch.tensor([[True, True, False]])
    likelihood = torch.zeros(1, dtype=torch.float64)
    loss, _ = reinforce_loss(selection, likelihood, -1.0, step_mask=valid)
    torch.testing.assert_close(loss, -weights[0, 0, 1].log())
    loss.backward(retain_graph=True)
    assert scores.grad.isfinite().all()
    assert (scores.grad[0, 1:] == 0).all()
    scores.grad = None
    loss, _ = reinforce_loss(selection, likelihood, 0.0, step_mask=valid, entropy_weight=1.0)
    loss.backward()
    assert (scores.grad[0, 1] != 0).all()
    assert (scores.grad[0, 2] == 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_rows_without_keys_are_harmless(dtype):
    attention = Attention(score=DotScore(), selection=Softmax(), aggregation=Sample()).train()
    query = (1e3 * torch.randn(2, 5, 11)).to(dtype).requires_grad_()
    mask = torch.arange(7) < torch.tensor([0, 7])[:, None, None]
    reading = attention(query, torch.randn(2, 7, 11).to(dtype), mask=mask)
    loss, _ = reinforce_loss(reading.selection, reading.context.sum((-1, -2)), -1.0, entropy_weight=0.1)
    loss.backward()
    assert loss.isfinite()
    assert query.grad.isfinite().all()
    assert (query.grad[0] == 0).all()


@pytest.mark.parametrize("selection", [Softmax(), Hard(), Hard(expectation_rate=0.0)], ids=["sample", "mixed", "hard"])
def test_learns_where_to_look(selection):
    torch.manual_seed(0)
    attention = Attention(score=DotScore(), selection=selection, aggregation=Sample()).train()
    query = torch.zeros(1, KEYS, requires_grad=True)
    keys = torch.eye(KEYS)
    payoff = torch.tensor([[-4.0], [-1.0], [-3.0]])
    optimizer = torch.optim.Adam([query], lr=0.3)
    baseline = None
    for _ in range(60):
        reading = attention(query.expand(11, 1, -1), keys.expand(11, -1, -1), payoff.expand(11, -1, -1))
        loss, baseline = reinforce_loss(reading.selection, reading.context.sum((-1, -2)), baseline)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert torch.softmax(query, -1)[0, 1] > 0.9


def test_refuses_likelihoods_that_are_not_one_per_sentence():
    selection = Categorical(torch.full((3, STEPS, KEYS), 1 / KEYS))
    with pytest.raises(ValueError, match=r"batch shape \(3,\) of the selection, got \(3, 2\)"):
        reinforce_loss(selection, torch.zeros(3, 2))


def test_each_row_has_its_own_loss():
    selection = Categorical(torch.full((3, 2, 5), 0.2)).sample()
    selection = Drawn(torch.full((3, 2, 5), 0.2), drawn=selection)
    likelihoods = torch.tensor([-1.0, -2.0, -4.0])
    each, baseline = reinforce_loss(selection, likelihoods, -1.5, reduction="none")
    log_prob = 2 * math.log(0.2)
    assert each.tolist() == pytest.approx([-(value + (value + 1.5) * log_prob) for value in likelihoods.tolist()])
    total, again = reinforce_loss(selection, likelihoods, -1.5, reduction="sum")
    assert total.item() == pytest.approx(each.sum().item())
    assert float(baseline) == float(again) == pytest.approx(0.9 * -1.5 + 0.1 * -7 / 3)
