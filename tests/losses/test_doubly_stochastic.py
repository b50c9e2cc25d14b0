import pytest
import torch

from saccade.losses import doubly_stochastic_loss

from .examples import (
    BATCH,
    KEY_LENGTHS,
    STEP_LENGTHS,
    assert_padding_does_not_matter,
    assert_reductions,
    example,
    valid,
)


@pytest.mark.parametrize("tau", [1.0, 0.5, "ratio"])
def test_equals_the_paper(tau):
    weights, steps, keys = example()
    items = torch.zeros(BATCH, dtype=torch.float64)
    for b in range(BATCH):
        target = STEP_LENGTHS[b] / KEY_LENGTHS[b] if tau == "ratio" else tau
        for i in valid(b)[1]:
            items[b] += (target - sum(weights[b, t, i].item() for t in valid(b)[0])) ** 2
    assert_reductions(
        lambda reduction: doubly_stochastic_loss(weights, tau=tau, step_mask=steps, key_mask=keys, reduction=reduction),
        items,
        count=BATCH,
    )


def test_ratio_is_zero_for_uniform_attention():
    assert doubly_stochastic_loss(torch.full((3, 5, 7), 1 / 7), tau="ratio").item() == pytest.approx(0.0, abs=1e-12)
    assert doubly_stochastic_loss(torch.full((3, 5, 7), 1 / 7)).item() == pytest.approx(7 * (2 / 7) ** 2)


def test_gradcheck_padding_and_no_keys():
    weights, steps, keys = example()
    given = weights.clone().requires_grad_()
    for tau in (1.0, "ratio"):
        loss = lambda w: doubly_stochastic_loss(w, tau=tau, step_mask=steps, key_mask=keys)  # noqa: B023, E731
        assert torch.autograd.gradcheck(loss, [given])
        assert_padding_does_not_matter(loss, *example())
        assert doubly_stochastic_loss(torch.zeros(3, 5, 0), tau=tau) == 0


def test_refuses_an_unknown_tau():
    with pytest.raises(ValueError, match="'ratio', got 'auto'"):
        doubly_stochastic_loss(torch.rand(5, 7), tau="auto")
