"""Decisions one after another, against a loop of the equation and the enumeration of all outcomes."""

import itertools

import pytest
import torch

from saccade.layers import SequentialSelection
from saccade.selections import BinaryConcrete

BATCH, QUERIES, KEYS, DIM, HIDDEN = 2, 3, 5, 7, 11
MASK = torch.tensor([[True, True, True, True, True], [True, False, True, True, False]])[:, None].expand(-1, QUERIES, -1)


@pytest.fixture(params=["rcnn", "gru", "lstm"])
def selection(request):
    torch.manual_seed(5)
    return SequentialSelection(key_dim=DIM, hidden_dim=HIDDEN, cell=request.param).double()


def given():
    torch.manual_seed(7)
    return torch.randn(BATCH, QUERIES, KEYS, dtype=torch.float64), torch.randn(BATCH, KEYS, DIM, dtype=torch.float64)


def select(selection, scores, keys, mask=MASK):
    return selection(scores, mask, prepared=selection.prepare(keys))


def conditional(selection, scores, keys, mask, z):
    """p(z_j = 1 | z before j) of one row, by the equation."""
    state, found = selection.layer.cell.zeros(1, like=keys), []
    for score, key, real, decision in zip(scores, keys, mask, z, strict=True):
        if not real:
            found.append(torch.zeros((), dtype=torch.float64))
            continue
        found.append(torch.sigmoid(score + selection.output_proj(state[0])[0, 0]))
        state = selection.layer.step(torch.cat([key, decision[None]])[None], state)
    return torch.stack(found)


def test_log_probabilities_of_all_outcomes_are_those_of_the_equation(selection):
    scores, keys = given()
    outcomes = torch.tensor(list(itertools.product([0.0, 1.0], repeat=KEYS)), dtype=torch.float64)
    distribution = select(selection, scores, keys)
    several = outcomes[:, None, None].expand(-1, BATCH, QUERIES, -1)
    found = distribution.log_prob(several)
    torch.testing.assert_close(found.exp().sum(0), torch.ones(BATCH, QUERIES, dtype=torch.float64))
    for row, query in itertools.product(range(BATCH), range(QUERIES)):
        mask = MASK[row, query]
        for number, z in enumerate(outcomes):
            p = conditional(selection, scores[row, query], keys[row], mask, z)
            wanted = torch.where(z > 0, p, 1 - p)[mask].prod() * (not bool(z[~mask].any()))
            torch.testing.assert_close(found[number, row, query].exp(), wanted)


def test_evaluation_is_greedy(selection):
    scores, keys = given()
    distribution = select(selection.eval(), scores, keys)
    for row, query in itertools.product(range(BATCH), range(QUERIES)):
        p = conditional(selection, scores[row, query], keys[row], MASK[row, query], distribution.draw[row, query])
        assert torch.equal(distribution.draw[row, query] > 0, p > 0.5)
        torch.testing.assert_close(distribution.marginals[row, query], p)
    assert torch.equal(distribution.mode, distribution.draw)
    assert distribution.picked is distribution.draw
    assert not distribution.draw[~MASK].any()


def test_samples_have_the_probabilities_of_their_outcomes():
    torch.manual_seed(1)
    selection = SequentialSelection(key_dim=DIM, hidden_dim=HIDDEN).double()
    n = 4000
    scores, keys = (given()[0][:1, :1], given()[1][:1])
    distribution = select(selection, scores.expand(n, 1, KEYS), keys.expand(n, KEYS, DIM), None)
    assert distribution.training
    codes = (distribution.draw[:, 0] @ (2.0 ** torch.arange(KEYS, dtype=torch.float64))).long()
    shares = torch.bincount(codes, minlength=2**KEYS) / n
    outcomes = torch.tensor(list(itertools.product([0.0, 1.0], repeat=KEYS)), dtype=torch.float64).flip(1)
    p = select(selection, scores, keys, None).log_prob(outcomes[:, None, None]).exp()[:, 0, 0]
    assert ((shares - p).abs() <= 5 * (p * (1 - p) / n).sqrt() + 1e-9).all()
    # The conditional probabilities along samples average to the marginals.
    marginal = (p[:, None] * outcomes).sum(0)
    torch.testing.assert_close(distribution.marginals.mean((0, 1)), marginal, rtol=0, atol=0.03)


def test_straight_through_draws_are_hard_and_carry_gradients():
    torch.manual_seed(2)
    selection = SequentialSelection(
        key_dim=DIM, hidden_dim=HIDDEN, relaxation=BinaryConcrete(straight_through=True)
    ).double()
    scores, keys = given()
    scores.requires_grad_()
    distribution = select(selection, scores, keys)
    assert ((distribution.draw == 0) | (distribution.draw == 1)).all()
    torch.testing.assert_close(distribution.along.logits, distribution.given(distribution.draw).logits)
    distribution.draw[..., -2].sum().backward()
    assert (scores.grad[MASK][: KEYS - 1] != 0).all()  # through the state, later decisions depend on all before them
    assert selection.layer.cell.weight.grad.isfinite().all()


def test_no_keys_and_rows_without_any():
    selection = SequentialSelection(key_dim=DIM, hidden_dim=HIDDEN)
    empty = select(selection, torch.zeros(BATCH, 1, 0), torch.zeros(BATCH, 0, DIM), None)
    assert empty.draw.shape == empty.marginals.shape == (BATCH, 1, 0)
    scores = torch.randn(BATCH, 1, KEYS, requires_grad=True)
    masked = select(selection, scores, torch.randn(BATCH, KEYS, DIM), torch.zeros(BATCH, 1, KEYS, dtype=torch.bool))
    assert not masked.draw.any()
    assert not masked.marginals.any()
    masked.log_prob(masked.draw).sum().backward()
    assert not scores.grad.any()
