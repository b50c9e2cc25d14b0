import pytest
import torch

from saccade import Attention
from saccade.aggregations import Sample
from saccade.scores import DotScore
from saccade.selections import GumbelSoftmax

SCORES = torch.tensor([[1.0, -0.5, 0.3, 2.0]], dtype=torch.float64)


def test_straight_through_draws_exact_samples():
    torch.manual_seed(0)
    n = 20_000
    distribution = GumbelSoftmax(temperature=0.5, straight_through=True)(SCORES.expand(n, 1, 4))
    draw = distribution.draw
    assert ((draw == 0) | (draw == 1)).all()
    assert (draw.sum(-1) == 1).all()
    p = torch.softmax(SCORES, -1)
    torch.testing.assert_close(distribution.marginals[0], p)
    assert ((draw.mean(0) - p).abs() <= 5 * (p * (1 - p) / n).sqrt()).all()


def test_relaxed_draw_follows_the_equation():
    scores = torch.randn(3, 5, 7, dtype=torch.float64)
    torch.manual_seed(3)
    draw = GumbelSoftmax(temperature=0.7)(scores).draw
    torch.manual_seed(3)
    uniform = torch.rand(3, 5, 7, dtype=torch.float64)
    torch.testing.assert_close(draw, torch.softmax((scores - torch.log(-torch.log(uniform))) / 0.7, -1))


def test_straight_through_gradient_is_that_of_the_relaxed_draw():
    gradients = []
    for straight_through in (False, True):
        scores = SCORES.clone().requires_grad_()
        torch.manual_seed(5)
        draw = GumbelSoftmax(straight_through=straight_through)(scores).draw
        (draw * torch.tensor([0.3, -1.0, 2.0, 0.5])).sum().backward()
        gradients.append(scores.grad)
    assert (gradients[0] != 0).all()
    torch.testing.assert_close(gradients[1], gradients[0])


def test_low_temperatures_come_close_to_samples():
    draw = GumbelSoftmax(temperature=1e-3)(SCORES.expand(500, 1, 4)).draw
    assert (draw.max(-1).values > 0.99).double().mean() > 0.98


def test_evaluation_takes_the_mode():
    distribution = GumbelSoftmax().eval()(SCORES)
    assert distribution.draw.tolist() == [[0, 0, 0, 1]]


@pytest.mark.parametrize("straight_through", [False, True])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_masked_keys_are_exactly_zero(straight_through, dtype):
    scores = (1e4 * torch.randn(7, 3, 5)).to(dtype).requires_grad_()
    mask = torch.arange(5) < torch.tensor([0, 1, 2, 3, 4, 5, 5])[:, None, None]
    draw = GumbelSoftmax(straight_through=straight_through)(scores, mask).draw
    assert draw.dtype == dtype
    assert (draw[(~mask).expand_as(draw)] == 0).all()
    assert draw.isfinite().all()
    draw.sum().backward()
    assert scores.grad.isfinite().all()


def test_attention_takes_the_draw():
    attention = Attention(score=DotScore(), selection=GumbelSoftmax(straight_through=True))
    assert isinstance(attention.aggregation, Sample)
    query = torch.randn(3, 11, 5, requires_grad=True)
    keys, values = torch.randn(3, 7, 5), torch.randn(3, 7, 2)
    reading = attention(query, keys, values)
    picked = reading.selection.draw.argmax(-1)
    torch.testing.assert_close(reading.context, values.gather(1, picked.unsqueeze(-1).expand(-1, -1, 2)))
    reading.context.sum().backward()
    assert (query.grad != 0).any()


def test_temperature_is_checked():
    with pytest.raises(ValueError, match=r"temperature must be above 0, got 0\.0"):
        GumbelSoftmax(temperature=0.0)
