"""States pooled into one vector, against plain loops."""

import pytest
import torch
from torch import nn

from saccade.encoders import EmbeddingEncoder, PooledEncoder

LENGTHS = (5, 2, 0)
MASK = torch.arange(5) < torch.tensor(LENGTHS).unsqueeze(1)


def pooled(**options):
    encoder = EmbeddingEncoder(embedding=nn.Identity(), dim=7)
    return PooledEncoder(encoder=encoder, hidden_dim=3, **options).double()


@pytest.fixture
def states():
    torch.manual_seed(0)
    return torch.randn(3, 5, 7, dtype=torch.double)


@pytest.mark.parametrize(("pooling", "reduce"), [("average", lambda s: s.mean(0)), ("max", lambda s: s.amax(0))])
def test_average_and_maximum_of_real_states(states, pooling, reduce):
    states.requires_grad_()
    model = pooled(pooling=pooling)
    found = model(states, MASK)
    for row, length in enumerate(LENGTHS[:2]):
        torch.testing.assert_close(found[row], reduce(states[row, :length]))
    assert not found[2].any()
    found.sum().backward()
    assert states.grad.isfinite().all()
    assert not states.grad[~MASK].any()
    assert list(model.parameters()) == []


def test_the_attention_of_the_paper(states):
    model = pooled()
    W, b = model.pooling.score.key_proj.weight, model.pooling.score.key_proj.bias
    u = model.pooling.score.hidden_proj.weight[0]
    found = model(states, MASK)
    for row, length in enumerate(LENGTHS[:2]):
        weights = torch.stack([u @ torch.tanh(W @ h + b) for h in states[row, :length]]).exp()
        torch.testing.assert_close(found[row], (weights / weights.sum()) @ states[row, :length])
    assert not found[2].any()


def test_several_queries_look_for_several_things(states):
    """Lin et al. (2017), equations 5 to 7, with queries for the rows of W_s2."""
    model = pooled(score="bilinear", num_queries=2)
    assert model.output_dim == 14
    found = model(states, MASK)
    for row, length in enumerate(LENGTHS[:2]):
        for number, query in enumerate(model.queries):
            one = pooled(score="bilinear")
            one.pooling.load_state_dict(model.pooling.state_dict())
            one.queries.data.copy_(query)
            alone = one(states[row : row + 1, :length], MASK[row : row + 1, :length])
            torch.testing.assert_close(found[row, 7 * number : 7 * number + 7], alone[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pooling": "mean"}, "Unknown pooling 'mean'"),
        ({"pooling": "max", "num_queries": 2}, "pooling='max' has no queries: leave out num_queries=2"),
        ({"num_queries": 2}, "QueryFreeScore has a single query, among its weights: num_queries=2 needs another score"),
        ({"num_queries": 0}, "num_queries must be 1 or more"),
        ({"score": "nothing"}, "nothing"),
    ],
)
def test_refusals(options, message):
    with pytest.raises((ValueError, KeyError), match=message):
        pooled(**options)
