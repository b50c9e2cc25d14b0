import torch

from saccade import Attention, MultiHead
from saccade.aggregations import MaxPool, create
from saccade.scores import DotScore
from saccade.selections import Softmax

from .examples import BATCH, KEYS, QUERIES, VALUE_DIM, assert_empty_rows_are_safe, example


def literal(weights, values, mask):
    context = torch.zeros(BATCH, QUERIES, VALUE_DIM, dtype=weights.dtype)
    for b in range(BATCH):
        for i in range(QUERIES):
            for d in range(VALUE_DIM):
                products = [weights[b, i, j] * values[b, j, d] for j in range(KEYS) if mask[b, i, j]]
                context[b, i, d] = max(products) if products else 0.0
    return context


def test_equals_the_literal_maximum():
    _, weights, values, mask = example()
    torch.testing.assert_close(create("max_pool")(weights, values, mask=mask), literal(weights, values, mask))
    everything = torch.ones_like(mask)
    torch.testing.assert_close(MaxPool()(weights, values), literal(weights, values, everything))


def test_masked_zeros_do_not_win_over_negative_values():
    weights = torch.tensor([[0.5, 0.5, 0.0]])
    values = torch.tensor([[-2.0], [-4.0], [9.0]])
    mask = torch.tensor([[True, True, False]])
    assert MaxPool()(weights, values, mask=mask).tolist() == [[-1.0]]


def test_gradcheck_and_empty_rows():
    _, weights, values, mask = example()
    mask[0, 1] = True
    inputs = [(weights[:2] + 0.1).requires_grad_(), values[:2].clone().requires_grad_()]
    assert torch.autograd.gradcheck(lambda w, v: MaxPool()(w, v, mask=mask[:2]), inputs)
    assert_empty_rows_are_safe(MaxPool())


def test_padding_and_no_keys_in_attention():
    attention = Attention(score=DotScore(), selection=Softmax(), aggregation=MaxPool())
    query, keys, values = torch.randn(3, 5, 11), torch.randn(3, 7, 11), -torch.rand(3, 7, 2)
    plain = attention(query, keys, values).context
    padded = attention(
        query,
        torch.cat([keys, torch.randn(3, 2, 11)], 1),
        torch.cat([values, torch.randn(3, 2, 2)], 1),
        mask=torch.arange(9) < 7,
    ).context
    torch.testing.assert_close(padded, plain)
    assert (attention(query, keys[:, :0], values[:, :0]).context == 0).all()
    heads = MultiHead(attention=attention, num_heads=3, query_dim=15)
    assert heads(torch.randn(2, 7, 15)).context.shape == (2, 7, 15)
