import pytest
import torch

from saccade.selections import BinaryConcrete

SCORES = torch.tensor([[1.0, -0.5, 0.3, 2.0]], dtype=torch.float64)


def test_straight_through_draws_exact_samples():
    torch.manual_seed(0)
    n = 20_000
    distribution = BinaryConcrete(temperature=0.5, straight_through=True)(SCORES.expand(n, 1, 4))
    draw = distribution.draw
    assert ((draw == 0) | (draw == 1)).all()
    p = torch.sigmoid(SCORES)
    torch.testing.assert_close(distribution.marginals[0], p)
    assert ((draw.mean(0) - p).abs() <= 5 * (p * (1 - p) / n).sqrt()).all()


def test_relaxed_draw_follows_the_equation():
    scores = torch.randn(3, 5, 7, dtype=torch.float64)
    torch.manual_seed(3)
    draw = BinaryConcrete(temperature=0.7)(scores).draw
    torch.manual_seed(3)
    uniform = torch.rand(3, 5, 7, dtype=torch.float64)
    wanted = 1 / (1 + torch.exp(-(scores + uniform.log() - (1 - uniform).log()) / 0.7))
    torch.testing.assert_close(draw, wanted)


def test_straight_through_gradient_is_that_of_the_relaxed_draw():
    gradients = []
    for straight_through in (False, True):
        scores = SCORES.clone().requires_grad_()
        torch.manual_seed(5)
        draw = BinaryConcrete(straight_through=straight_through)(scores).draw
        (draw * torch.tensor([0.3, -1.0, 2.0, 0.5])).sum().backward()
        gradients.append(scores.grad)
    assert (gradients[0] != 0).all()
    torch.testing.assert_close(gradients[1], gradients[0])


def test_evaluation_picks_what_is_more_likely_than_not():
    distribution = BinaryConcrete().eval()(SCORES)
    assert distribution.draw.tolist() == [[1, 0, 1, 1]]
    assert distribution.picked is distribution.draw


def test_temperature_is_checked():
    with pytest.raises(ValueError, match=r"temperature must be above 0, got 0\.0"):
        BinaryConcrete(temperature=0.0)
