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


def test_a_share_is_picked_in_training_and_evaluation():
    lengths = torch.tensor([[11], [4], [1], [0]])
    mask = (torch.arange(11) < lengths).unsqueeze(1)
    scores = torch.randn(4, 1, 11)
    selection = BinaryConcrete(straight_through=True, share=0.3)
    for _ in range(5):
        assert selection(scores, mask).draw.sum(-1).flatten().tolist() == [3, 1, 1, 0]
    found = selection.eval()(scores, mask)
    assert found.draw.sum(-1).flatten().tolist() == [3, 1, 1, 0]
    assert set(scores[0, 0].topk(3).indices.tolist()) == set(found.draw[0, 0].nonzero().flatten().tolist())
    assert torch.equal(found.marginals >= 0.5, found.draw > 0)
    shifted = selection(scores + 7.0, mask)
    torch.testing.assert_close(shifted.marginals, found.marginals)  # the level of the scores does not matter
    assert BinaryConcrete(share=1.0).eval()(scores, mask).draw.sum(-1).flatten().tolist() == [11, 4, 1, 0]
    assert selection(torch.zeros(2, 1, 0)).draw.shape == (2, 1, 0)


def test_gradients_of_a_share_reach_every_score():
    scores = torch.randn(1, 1, 7, requires_grad=True)
    (BinaryConcrete(straight_through=True, share=0.3)(scores).draw * torch.randn(7)).sum().backward()
    assert (scores.grad != 0).all()


def test_temperature_is_checked():
    with pytest.raises(ValueError, match=r"temperature must be above 0, got 0\.0"):
        BinaryConcrete(temperature=0.0)


@pytest.mark.parametrize("share", [0.0, 1.5])
def test_shares_are_checked(share):
    with pytest.raises(ValueError, match=rf"share must be above 0 and at most 1, got {share}"):
        BinaryConcrete(share=share)
