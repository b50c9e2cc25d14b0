import pytest
import torch

from saccade import Attention
from saccade.aggregations import Sample
from saccade.scores import DotScore
from saccade.selections import Hard, Softmax

SCORES = torch.tensor([[1.0, -0.5, 0.3, 2.0]], dtype=torch.float64)


def test_marginals_are_the_softmax():
    scores, mask = torch.randn(3, 5, 7), torch.rand(3, 5, 7) > 0.3
    expected = Softmax(temperature=0.7)(scores, mask).marginals
    torch.testing.assert_close(Hard(temperature=0.7)(scores, mask).marginals, expected)


def test_mean_of_draws_is_the_marginals():
    torch.manual_seed(0)
    n = 20_000
    distribution = Hard(expectation_rate=0.0)(SCORES.expand(n, 1, 4))
    assert distribution.draw is distribution.draw
    assert ((distribution.draw == 0) | (distribution.draw == 1)).all()
    p = torch.softmax(SCORES, -1)
    assert ((distribution.draw.mean(0) - p).abs() <= 5 * (p * (1 - p) / n).sqrt()).all()


def test_draws_pass_no_gradient_on():
    scores = SCORES.clone().requires_grad_()
    (Hard(expectation_rate=0.0)(scores).draw * torch.arange(4.0)).sum().backward()
    assert (scores.grad == 0).all()


def test_expectation_replaces_the_draws_of_whole_batch_rows():
    torch.manual_seed(0)
    n = 2000
    distribution = Hard(expectation_rate=0.3)(SCORES.expand(n, 5, 4))
    expected = (distribution.draw == distribution.marginals).all(-1)
    assert (expected.all(-1) == expected.any(-1)).all()
    assert abs(expected.all(-1).double().mean().item() - 0.3) < 5 * (0.3 * 0.7 / n) ** 0.5


def test_expectation_always_is_soft_attention():
    scores = SCORES.clone().requires_grad_()
    draw = Hard(expectation_rate=1.0)(scores).draw
    torch.testing.assert_close(draw, torch.softmax(SCORES, -1))
    (draw * torch.arange(4.0)).sum().backward()
    assert (scores.grad != 0).all()


def test_evaluation():
    assert Hard().eval()(SCORES).draw.tolist() == [[0, 0, 0, 1]]
    expectation = Hard(evaluate_with="expectation").eval()(SCORES)
    assert expectation.draw is expectation.marginals


def test_masked_keys_are_never_drawn():
    mask = torch.tensor([[True, True, False, False]])
    draw = Hard(expectation_rate=0.0)(SCORES.expand(500, 1, 4), mask).draw
    assert (draw.sum(-1) == 1).all()
    assert (draw[..., 2:] == 0).all()
    assert (Hard(expectation_rate=0.0)(SCORES, torch.zeros(4, dtype=torch.bool)).draw == 0).all()


def test_attention_reads_the_value_that_was_drawn():
    attention = Attention(score=DotScore(), selection=Hard(expectation_rate=0.0))
    assert isinstance(attention.aggregation, Sample)
    keys, values = torch.randn(3, 7, 5), torch.randn(3, 7, 2)
    reading = attention(torch.randn(3, 11, 5), keys, values)
    picked = reading.selection.draw.argmax(-1)
    torch.testing.assert_close(reading.context, values.gather(1, picked.unsqueeze(-1).expand(-1, -1, 2)))


def test_score_function_is_the_gradient_of_the_expectation():
    # E[R(z) d log p(z)], by enumeration, is d E[R(z)].
    scores = SCORES.clone().requires_grad_()
    distribution = Hard()(scores)
    reward = torch.tensor([0.3, -1.0, 2.0, 0.5], dtype=torch.float64)
    (exact,) = torch.autograd.grad((distribution.marginals * reward).sum(), scores, retain_graph=True)
    estimate = torch.zeros_like(exact)
    for j in range(4):
        z = torch.eye(4, dtype=torch.float64)[j : j + 1]
        (score,) = torch.autograd.grad(distribution.log_prob(z).sum(), scores, retain_graph=True)
        estimate += distribution.marginals[0, j].detach() * reward[j] * score
    torch.testing.assert_close(estimate, exact)


def test_draws_join():
    parts = [Hard()(torch.randn(2, 1, 5)) for _ in range(3)]
    joined = type(parts[0]).cat(parts)
    torch.testing.assert_close(joined.draw, torch.cat([part.draw for part in parts], dim=-2))


@pytest.mark.parametrize(
    ("argument", "value"), [("temperature", 0.0), ("expectation_rate", 1.5), ("evaluate_with", "sample")]
)
def test_arguments_are_checked(argument, value):
    with pytest.raises(ValueError, match=f"{argument} must be .* got '?{value}"):
        Hard(**{argument: value})
