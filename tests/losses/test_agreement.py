import pytest
import torch

from saccade.losses import agreement_bonus

from .examples import (
    BATCH,
    KEY_LENGTHS,
    KEYS,
    STEP_LENGTHS,
    STEPS,
    assert_padding_does_not_matter,
    assert_reductions,
    example,
)


def other_direction():
    return torch.softmax(torch.randn(BATCH, KEYS, STEPS, generator=torch.Generator().manual_seed(5)).double(), -1)


@pytest.mark.parametrize("normalize", [True, False])
def test_is_the_negative_trace(normalize):
    there, steps, keys = example()
    back = other_direction()
    items = torch.zeros(BATCH, dtype=torch.float64)
    for b, (t, s) in enumerate(zip(STEP_LENGTHS, KEY_LENGTHS, strict=True)):
        trace = torch.trace(there[b, :t, :s] @ back[b, :s, :t])
        items[b] = -trace / (max(min(t, s), 1) if normalize else 1)
    assert_reductions(
        lambda reduction: agreement_bonus(
            there, back, target_mask=steps, source_mask=keys, normalize=normalize, reduction=reduction
        ),
        items,
        count=BATCH,
    )


def test_one_to_one_links_reach_the_bound():
    links = torch.eye(7)[:5]
    assert agreement_bonus(links, links.T) == -1.0
    assert agreement_bonus(links, links.T, normalize=False) == -5.0
    assert agreement_bonus(links, links.roll(1, dims=1).T) == 0.0


def test_gradcheck_and_padding():
    there, steps, keys = example()
    inputs = [there.clone().requires_grad_(), other_direction().requires_grad_()]
    assert torch.autograd.gradcheck(lambda a, b: agreement_bonus(a, b, target_mask=steps, source_mask=keys), inputs)
    assert_padding_does_not_matter(
        lambda a: agreement_bonus(a, other_direction(), target_mask=steps, source_mask=keys), *example()
    )


def test_refuses_two_attentions_of_the_same_direction():
    there = example()[0]
    with pytest.raises(ValueError, match="the transpose of"):
        agreement_bonus(there, there)
