import math

import pytest
import torch

from saccade import Attention, MultiHead
from saccade.aggregations import LogSumExp, create
from saccade.scores import DotScore
from saccade.selections import Softmax

from .examples import BATCH, KEYS, QUERIES, VALUE_DIM, assert_empty_rows_are_safe, example


@pytest.mark.parametrize("r", [0.5, 3.0, -2.0])
@pytest.mark.parametrize("mass_one", [True, False])
def test_equals_the_literal_sum(r, mass_one):
    _, weights, values, mask = example(mass_one=mass_one)
    context = create("log_sum_exp", sharpness=r)(weights, values, mask=mask)
    for b in range(BATCH):
        for i in range(QUERIES):
            for d in range(VALUE_DIM):
                total = sum(weights[b, i, j].item() * math.exp(r * values[b, j, d].item()) for j in range(KEYS))
                expected = math.log(total) / r if total > 0 else 0.0
                assert context[b, i, d].item() == pytest.approx(expected, abs=1e-12)


def test_goes_from_the_mean_to_the_extremes():
    _, weights, values, _ = example()
    weights, values = weights[1:2], values[1:2]
    torch.testing.assert_close(LogSumExp(sharpness=1e-6)(weights, values), weights @ values, atol=1e-5, rtol=0)
    weighted = torch.where(weights > 0, 0.0, -torch.inf).unsqueeze(-1)
    largest = (weighted + values.unsqueeze(-3)).amax(-2)
    smallest = (values.unsqueeze(-3) - weighted).amin(-2)
    torch.testing.assert_close(LogSumExp(sharpness=1e5)(weights, values), largest, atol=1e-3, rtol=0)
    torch.testing.assert_close(LogSumExp(sharpness=-1e5)(weights, values), smallest, atol=1e-3, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_large_values_do_not_overflow(dtype):
    weights = torch.tensor([[0.5, 0.5, 0.0]], dtype=dtype, requires_grad=True)
    values = torch.tensor([[1e4], [-1e4], [3e4]], dtype=dtype, requires_grad=True)
    context = LogSumExp()(weights, values)
    context.sum().backward()
    torch.testing.assert_close(context, torch.tensor([[1e4 - math.log(2)]], dtype=dtype))
    assert weights.grad.isfinite().all()
    assert values.grad.flatten().tolist() == [1.0, 0.0, 0.0]


def test_gradcheck_and_empty_rows():
    _, weights, values, _ = example()
    inputs = [(weights[:2] + 0.1).requires_grad_(), values[:2].clone().requires_grad_()]
    assert torch.autograd.gradcheck(LogSumExp(sharpness=1.5), inputs)
    assert_empty_rows_are_safe(LogSumExp())


def test_in_attention_without_keys_and_in_heads():
    attention = Attention(score=DotScore(), selection=Softmax(), aggregation=LogSumExp())
    assert (attention(torch.randn(3, 5, 11), torch.randn(3, 0, 11)).context == 0).all()
    heads = MultiHead(attention=attention, num_heads=3, query_dim=15)
    assert heads(torch.randn(2, 7, 15)).context.shape == (2, 7, 15)


def test_refuses_a_sharpness_of_zero():
    with pytest.raises(ValueError, match="Expectation"):
        LogSumExp(sharpness=0.0)
