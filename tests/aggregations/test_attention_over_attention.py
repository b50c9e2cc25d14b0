import math

import pytest
import torch

from saccade import Attention, MultiHead
from saccade.aggregations import AttentionOverAttention, create
from saccade.scores import DotScore
from saccade.selections import Softmax

from .examples import BATCH, KEYS, QUERIES, VALUE_DIM, assert_empty_rows_are_safe, example


def literal(scores, values, mask):
    """The paper's two softmaxes as loops, each over the pairs that are allowed."""
    context = torch.zeros(BATCH, 1, VALUE_DIM, dtype=torch.float64)
    for b in range(BATCH):
        pairs = [(i, j) for i in range(QUERIES) for j in range(KEYS) if mask[b, i, j]]
        exps = {(i, j): math.exp(scores[b, i, j]) for i, j in pairs}
        rows = {i: sum(e for (i2, _), e in exps.items() if i2 == i) for i, _ in pairs}
        columns = {j: sum(e for (_, j2), e in exps.items() if j2 == j) for _, j in pairs}
        importance = {i: sum(exps[i, j] / columns[j] for j in columns if (i, j) in exps) / len(columns) for i in rows}
        for i, j in pairs:
            context[b, 0] += importance[i] * exps[i, j] / rows[i] * values[b, j]
    return context


def test_equals_the_paper():
    scores, weights, values, mask = example()
    context = create("attention_over_attention")(weights, values, scores=scores, mask=mask)
    torch.testing.assert_close(context, literal(scores, values, mask))
    everything = torch.ones_like(mask)
    plain = AttentionOverAttention()(torch.softmax(scores, -1), values, scores=scores)
    torch.testing.assert_close(plain, literal(scores, values, everything))


def test_masked_queries_and_keys_are_as_if_removed():
    attention = Attention(score=DotScore(), selection=Softmax(), aggregation=AttentionOverAttention()).double()
    query, keys, values = (torch.randn(3, n, d, dtype=torch.float64) for n, d in ((5, 11), (7, 11), (7, 2)))
    mask = (torch.arange(5) < 3).unsqueeze(-1) & (torch.arange(7) < 4)
    reading = attention(query, keys, values, mask=mask)
    assert reading.context.shape == (3, 1, 2)
    assert reading.weights.shape == (3, 5, 7)
    removed = attention(query[:, :3], keys[:, :4], values[:, :4])
    torch.testing.assert_close(reading.context, removed.context)


def test_gradcheck_and_empty_rows():
    scores, weights, values, mask = example()
    inputs = [t[:1].clone().requires_grad_() for t in (weights, values, scores)]
    aggregation = AttentionOverAttention()
    assert torch.autograd.gradcheck(lambda w, v, s: aggregation(w, v, scores=s, mask=mask[:1]), inputs)
    assert_empty_rows_are_safe(aggregation)


@pytest.mark.parametrize(("queries", "keys"), [(0, 7), (5, 0), (0, 0)])
def test_no_queries_or_no_keys_give_zeros(queries, keys):
    attention = Attention(score=DotScore(), aggregation=AttentionOverAttention())
    context = attention(torch.randn(3, queries, 11), torch.randn(3, keys, 11)).context
    assert context.tolist() == torch.zeros(3, 1, 11).tolist()


def test_heads_and_missing_scores():
    attention = Attention(score=DotScore(), aggregation=AttentionOverAttention())
    heads = MultiHead(attention=attention, num_heads=3, query_dim=15)
    assert heads(torch.randn(2, 7, 15)).context.shape == (2, 1, 15)
    with pytest.raises(ValueError, match="scores=scores"):
        AttentionOverAttention()(torch.rand(5, 7), torch.rand(7, 2))
