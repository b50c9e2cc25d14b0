"""A chain of keys, one for each query."""

import itertools

import pytest
import torch

from saccade import Attention, MultiHead, masks
from saccade.scores import BilinearScore, DotScore, LocationAwareScore, ScaledDotScore
from saccade.selections import Softmax, StepChain

STEPS, KEYS = 3, 5


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def bilinear():
    score = BilinearScore(query_dim=7, key_dim=7).double()
    torch.nn.init.normal_(score.query_proj.weight)
    return score


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("allowed", [[True] * 5, [True, False, True, True, False]])
def test_all_chains_of_facts(several, allowed):
    torch.manual_seed(0)
    following = [bilinear() for _ in range(STEPS - 1 if several else 1)]
    selection = StepChain(following=following if several else following[0])
    keys, queries, mask = random(KEYS, 7), random(STEPS, 7, seed=1), torch.tensor(allowed)
    chain = Attention(score=DotScore(), selection=selection)(queries, keys, mask=mask[None]).selection
    tables = [keys @ f.query_proj.weight.T @ keys.T for f in following] * (1 if several else STEPS - 1)
    outcomes, weights = [], []
    for path in itertools.product(mask.nonzero().squeeze(-1).tolist(), repeat=STEPS):
        z = torch.zeros(STEPS, KEYS, dtype=torch.float64)
        z[torch.arange(STEPS), torch.tensor(path)] = 1
        outcomes.append(z)
        own = sum(queries[k] @ keys[i] for k, i in enumerate(path))
        weights.append(own + sum(tables[k][i, j] for k, (i, j) in enumerate(itertools.pairwise(path))))
    z, weights = torch.stack(outcomes), torch.stack(weights)
    torch.testing.assert_close(chain.log_partition, weights.logsumexp(0))
    torch.testing.assert_close(chain.marginals, torch.einsum("o,oki->ki", weights.softmax(0), z))
    torch.testing.assert_close(chain.log_prob(z), weights.log_softmax(0))
    assert torch.equal(chain.mode, z[weights.argmax()])
    assert (chain.log_prob(chain.sample(50)) > -torch.inf).all()


def test_without_anything_that_follows_it_is_softmax_at_each_step():
    score = bilinear()
    torch.nn.init.zeros_(score.query_proj.weight)
    keys, queries = random(2, KEYS, 7), random(2, STEPS, 7, seed=1)
    mask = masks.from_lengths([5, 2])
    ours = Attention(score=DotScore(), selection=StepChain(following=score))(queries, keys, mask=mask)
    theirs = Attention(score=DotScore(), selection=Softmax())(queries, keys, mask=mask)
    torch.testing.assert_close(ours.weights, theirs.weights)
    torch.testing.assert_close(ours.context, theirs.context)


def test_a_step_without_keys_is_none_and_gradients_stay_finite():
    attention = Attention(score=DotScore(), selection=StepChain(following=bilinear()))
    queries = random(2, STEPS, 7, seed=1).requires_grad_()
    keys = random(2, KEYS, 7)
    mask = torch.ones(2, STEPS, KEYS, dtype=torch.bool)
    mask[0, 1], mask[1] = False, False
    reading = attention(queries, keys, mask=mask)
    assert (reading.weights[0, 1] == 0).all()
    assert (reading.weights[1] == 0).all()
    torch.testing.assert_close(reading.weights[0, [0, 2]].sum(-1), torch.ones(2, dtype=torch.float64))
    without = attention(queries[:1, [0, 2]], keys[:1])
    torch.testing.assert_close(reading.weights[0, [0, 2]], without.weights[0])
    (gradient,) = torch.autograd.grad(reading.context.square().sum() + reading.selection.entropy().sum(), queries)
    assert gradient.isfinite().all()
    assert (gradient[1] == 0).all()


def test_in_heads_and_gradients():
    layer = MultiHead(
        attention=Attention(
            score=ScaledDotScore(), selection=StepChain(following=BilinearScore(query_dim=7, key_dim=7))
        ),
        num_heads=2,
        query_dim=14,
    ).double()
    reading = layer(random(3, STEPS, 14), random(3, KEYS, 14, seed=1))
    assert reading.weights.shape == (3, 2, STEPS, KEYS)
    reading.context.square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in layer.parameters())
    selection = StepChain(following=bilinear())
    keys = random(KEYS, 7).requires_grad_()
    scores = random(STEPS, KEYS, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(lambda s, k: selection(s, prepared=selection.prepare(k)).marginals, (scores, keys))


def test_errors_name_the_fix():
    with pytest.raises(TypeError, match="must be a Score"):
        StepChain(following="bilinear")
    with pytest.raises(ValueError, match="compare two keys"):
        StepChain(following=LocationAwareScore(query_dim=7, key_dim=7, hidden_dim=3))
    selection = StepChain(following=[bilinear()])
    with pytest.raises(ValueError, match="3 steps need 2 scores"):
        selection(random(STEPS, KEYS), prepared=selection.prepare(random(KEYS, 7)))
    with pytest.raises(ValueError, match="compares the keys"):
        StepChain(following=bilinear())(random(STEPS, KEYS))
