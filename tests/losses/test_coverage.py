import pytest
import torch

from saccade.losses import coverage_loss

from .examples import BATCH, STEPS, assert_padding_does_not_matter, assert_reductions, example, valid


def literal(weights):
    items = torch.zeros(BATCH, STEPS, dtype=torch.float64)
    for b in range(BATCH):
        steps, keys = valid(b)
        coverage = dict.fromkeys(keys, 0.0)
        for t in steps:
            items[b, t] = sum(min(weights[b, t, i].item(), coverage[i]) for i in keys)
            for i in keys:
                coverage[i] += weights[b, t, i].item()
    return items


def test_equals_the_paper():
    weights, steps, keys = example()
    items = literal(weights)
    assert_reductions(
        lambda reduction: coverage_loss(weights, step_mask=steps, key_mask=keys, reduction=reduction),
        items,
        count=8,
    )


def test_first_step_is_free_and_repetition_costs_one():
    focused = torch.eye(4)[[2, 2, 1, 2]]
    assert coverage_loss(focused, reduction="none").tolist() == [0.0, 1.0, 0.0, 1.0]


def test_gradcheck_and_padding():
    weights, steps, keys = example()
    given = weights.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda w: coverage_loss(w, step_mask=steps, key_mask=keys), [given])
    assert_padding_does_not_matter(lambda w: coverage_loss(w, step_mask=steps, key_mask=keys), *example())


def test_nothing_to_score_is_zero():
    assert coverage_loss(torch.zeros(3, 0, 7)) == 0
    assert coverage_loss(torch.zeros(3, 5, 0)) == 0
    assert coverage_loss(torch.rand(5, 7), step_mask=torch.zeros(5, dtype=torch.bool)) == 0
    assert coverage_loss(torch.rand(5, 7, dtype=torch.bfloat16)).dtype == torch.float32


def test_refuses_wrong_masks_and_reductions():
    weights, steps, _ = example()
    with pytest.raises(TypeError, match="mask must be bool"):
        coverage_loss(weights, step_mask=steps.float())
    with pytest.raises(ValueError, match=r"step_mask of shape \(3, 2\) .* \(3, 5\)"):
        coverage_loss(weights, step_mask=steps[:, :2])
    with pytest.raises(ValueError, match=r"reduction must be .* got 'average'"):
        coverage_loss(weights, reduction="average")
    with pytest.raises(ValueError, match="weights must be"):
        coverage_loss(weights[0, 0])
