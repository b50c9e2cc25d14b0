"""TopKMean and ConcatPicks."""

import pytest
import torch

from saccade import Attention, MultiHead
from saccade.aggregations import ConcatPicks, TopKMean, create
from saccade.scores import DotScore
from saccade.selections import Softmax

from .examples import BATCH, KEYS, QUERIES, VALUE_DIM, assert_empty_rows_are_safe, example


def picks(row, k):
    """Positions of the k largest positive weights, the earlier first among equals."""
    return sorted((j for j in range(KEYS) if row[j] > 0), key=lambda j: (-row[j].item(), j))[:k]


@pytest.mark.parametrize("k", [1, 3, KEYS, KEYS + 4])
@pytest.mark.parametrize("weighted", [True, False])
def test_top_k_mean_equals_the_literal_mean(k, weighted):
    _, weights, values, mask = example(mass_one=False)
    context = create("top_k_mean", k=k, weighted=weighted)(weights, values, mask=mask)
    for b in range(BATCH):
        for i in range(QUERIES):
            chosen = picks(weights[b, i], k)
            factors = [weights[b, i, j] if weighted else torch.tensor(1.0).double() for j in chosen]
            total = sum(f * values[b, j] for f, j in zip(factors, chosen, strict=True))
            expected = total / sum(factors) if chosen else torch.zeros(VALUE_DIM).double()
            torch.testing.assert_close(context[b, i], expected)


@pytest.mark.parametrize("k", [1, 3, KEYS, KEYS + 4])
@pytest.mark.parametrize("weighted", [True, False])
def test_concat_picks_equals_the_literal_picks(k, weighted):
    _, weights, values, mask = example()
    context = create("concat_picks", k=k, weighted=weighted)(weights, values, mask=mask)
    assert context.shape == (BATCH, QUERIES, k * VALUE_DIM)
    for b in range(BATCH):
        for i in range(QUERIES):
            expected = torch.zeros(k, VALUE_DIM, dtype=torch.float64)
            for rank, j in enumerate(picks(weights[b, i], k)):
                expected[rank] = values[b, j] * (weights[b, i, j] if weighted else 1.0)
            torch.testing.assert_close(context[b, i], expected.flatten())


@pytest.mark.parametrize("aggregation", [TopKMean(k=3), ConcatPicks(k=3)])
def test_equal_weights_go_to_the_earlier_key(aggregation):
    weights = torch.full((2, 101), 1 / 101, dtype=torch.bfloat16)
    values = torch.arange(101, dtype=torch.bfloat16).unsqueeze(-1)
    context = aggregation(weights, values).float()
    if isinstance(aggregation, TopKMean):
        torch.testing.assert_close(context, torch.ones(2, 1), atol=0.02, rtol=0)
    else:
        torch.testing.assert_close(context * 101, torch.tensor([[0.0, 1.0, 2.0]]).expand(2, 3), atol=0.02, rtol=0)


@pytest.mark.parametrize("aggregation", [TopKMean(k=3), ConcatPicks(k=3), ConcatPicks(k=11)])
def test_gradcheck_and_empty_rows(aggregation):
    _, weights, values, _ = example()
    inputs = [weights[:1, 2:].clone().requires_grad_(), values[:1].clone().requires_grad_()]
    inputs[0].data += 0.01 * torch.arange(1, KEYS + 1)
    assert torch.autograd.gradcheck(aggregation, inputs)
    assert_empty_rows_are_safe(aggregation)


@pytest.mark.parametrize("aggregation", [TopKMean(k=3), ConcatPicks(k=3)])
def test_fewer_keys_than_k_and_none(aggregation):
    attention = Attention(score=DotScore(), selection=Softmax(), aggregation=aggregation)
    query, keys, values = torch.randn(2, 5, 11), torch.randn(2, 7, 11), torch.randn(2, 7, 2)
    for keys_left in (2, 1, 0):
        masked = attention(query, keys, values, mask=torch.arange(7) < keys_left).context
        removed = attention(query, keys[:, :keys_left], values[:, :keys_left]).context
        torch.testing.assert_close(masked, removed)
        assert masked.shape == (2, 5, aggregation.output_dim(2))


def test_heads_concatenate_the_picks_of_each():
    attention = Attention(score=DotScore(), selection=Softmax(), aggregation=ConcatPicks(k=3))
    heads = MultiHead(attention=attention, num_heads=2, query_dim=10, value_head_dim=7)
    assert heads.output_proj.in_features == 2 * 3 * 7
    x = torch.randn(2, 11, 10)
    reading = heads(x)
    assert reading.context.shape == (2, 11, 10)
    values = heads.value_proj(x).view(2, 11, 2, 7)
    best = reading.weights.max(-1)
    expected = best.values[0, 1, 4] * values[0, best.indices[0, 1, 4], 1]
    contexts = attention.aggregation(reading.weights, values.transpose(1, 2))
    torch.testing.assert_close(contexts[0, 1, 4, :7], expected)


@pytest.mark.parametrize("kind", [TopKMean, ConcatPicks])
def test_k_must_be_positive(kind):
    with pytest.raises(ValueError, match="k must be 1 or more, got 0"):
        kind(k=0)


def test_k_has_a_default():
    values = torch.randn(2, 11, 3)
    weights = torch.softmax(torch.randn(2, 5, 11), -1)
    assert create("top_k_mean")(weights, values).shape == (2, 5, 3)
    picks = create("concat_picks")
    assert picks(weights, values).shape == (2, 5, picks.output_dim(3))
