import pytest
import torch

from saccade import Attention, MultiHead
from saccade.aggregations import (
    AttentionOverAttention,
    ConcatPicks,
    Expectation,
    Gated,
    RenormalizedMean,
    Sample,
    create,
)
from saccade.distributions import Categorical
from saccade.scores import DotScore

from .examples import BATCH, QUERIES, VALUE_DIM, assert_empty_rows_are_safe, example

QUERY_DIM = 11


def query():
    return torch.randn(BATCH, QUERIES, QUERY_DIM, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def test_scalar_gate_multiplies_the_whole_context():
    gated = create("gated", query_dim=QUERY_DIM).double()
    _, weights, values, mask = example()
    context = gated(weights, values, query=query(), mask=mask)
    for b in range(BATCH):
        for i in range(QUERIES):
            logit = gated.gate_proj.weight[0] @ query()[b, i] + gated.gate_proj.bias[0]
            expected = weights[b, i] @ values[b] / (1 + torch.exp(-logit))
            torch.testing.assert_close(context[b, i], expected)


def test_vector_gate_has_one_number_a_feature():
    gated = Gated(query_dim=QUERY_DIM, value_dim=VALUE_DIM, aggregation=RenormalizedMean(scale=2.0)).double()
    _, weights, values, mask = example(mass_one=False)
    context = gated(weights, values, query=query(), mask=mask)
    assert gated.gate_proj.out_features == VALUE_DIM
    for d in range(VALUE_DIM):
        logit = query() @ gated.gate_proj.weight[d] + gated.gate_proj.bias[d]
        inner = RenormalizedMean(scale=2.0)(weights, values)[..., d]
        torch.testing.assert_close(context[..., d], inner / (1 + torch.exp(-logit)))


def test_passes_the_inner_aggregation_through():
    probs = torch.tensor([[0.1, 0.9]])
    assert Gated(query_dim=3, aggregation=Sample()).weights(Categorical(probs)).tolist() == [[0.0, 1.0]]
    picks = Gated(query_dim=3, value_dim=5, aggregation=ConcatPicks(k=7))
    assert picks.output_dim(5) == 35
    assert picks.gate_proj.out_features == 35
    assert isinstance(Gated(query_dim=3).aggregation, Expectation)


def test_gradcheck():
    gated = Gated(query_dim=QUERY_DIM, value_dim=VALUE_DIM).double()
    _, weights, values, mask = example()
    inputs = [t[:1].clone().requires_grad_() for t in (weights, values, query())]
    assert torch.autograd.gradcheck(lambda w, v, q: gated(w, v, query=q, mask=mask[:1]), inputs)


def test_empty_rows():
    assert_empty_rows_are_safe(Gated(query_dim=QUERY_DIM), query=query())


def test_refuses_what_does_not_fit():
    _, weights, values, _ = example()
    with pytest.raises(ValueError, match="query_dim=11"):
        Gated(query_dim=QUERY_DIM).double()(weights, values, query=query()[..., :3])
    with pytest.raises(ValueError, match="none was given"):
        Gated(query_dim=QUERY_DIM).double()(weights, values)
    with pytest.raises(ValueError, match="AttentionOverAttention has no context per query"):
        Gated(query_dim=QUERY_DIM, aggregation=AttentionOverAttention())
    with pytest.raises(ValueError, match="value_dim=2"):
        Gated(query_dim=QUERY_DIM, value_dim=13).double()(weights, values, query=query())


def test_in_attention_and_heads():
    attention = Attention(score=DotScore(), aggregation=Gated(query_dim=11, value_dim=13)).double()
    q, k, v = (torch.randn(3, n, d, dtype=torch.float64) for n, d in ((5, 11), (7, 11), (7, 13)))
    reading = attention(q, k, v)
    gates = torch.sigmoid(attention.aggregation.gate_proj(q))
    torch.testing.assert_close(reading.context, gates * (torch.softmax(q @ k.transpose(1, 2), -1) @ v))
    heads = MultiHead(attention=Attention(score=DotScore(), aggregation=Gated(query_dim=5)), num_heads=3, query_dim=15)
    assert heads(torch.randn(2, 7, 15)).context.shape == (2, 7, 15)
