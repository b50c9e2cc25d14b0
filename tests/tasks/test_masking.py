"""Masks: their statistics, and what is never hidden."""

import pytest
import torch

from saccade.data.special import BOS, EOS, PAD
from saccade.tasks.masking import can_hide, mask_at_random, mask_every, mask_some

MASK = 30
LENGTHS = (3, 41, 60)


def texts(count=600):
    torch.manual_seed(2)
    ids = torch.randint(4, MASK, (count, max(LENGTHS)))
    for row in range(count):
        length = LENGTHS[row % 3]
        ids[row, 0], ids[row, length - 1], ids[row, length:] = BOS, EOS, PAD
    return ids, ids != PAD


def test_shares_of_random_masks() -> None:
    ids, real = texts()
    given, hidden = mask_at_random(ids, real, share=0.15, mask_id=MASK, generator=torch.Generator().manual_seed(0))
    possible = can_hide(ids, real, MASK)
    assert not (hidden & ~possible).any()
    assert hidden.sum() / possible.sum() == pytest.approx(0.15, abs=0.01)
    masked, same = given == MASK, given == ids
    assert (masked & hidden).sum() / hidden.sum() == pytest.approx(0.8, abs=0.02)
    # One in 26 of the random tokens is the token itself.
    assert (same & hidden).sum() / hidden.sum() == pytest.approx(0.1 + 0.1 / 26, abs=0.02)
    assert same[~hidden].all()
    replaced = given[hidden & ~masked & ~same]
    assert set(replaced.tolist()) == set(range(4, MASK))


def test_random_masks_follow_from_the_generator() -> None:
    ids, real = texts(30)

    def draw(seed):
        return mask_at_random(ids, real, share=0.15, mask_id=MASK, generator=torch.Generator().manual_seed(seed)).given

    assert torch.equal(draw(1), draw(1))
    assert not torch.equal(draw(1), draw(2))


def test_the_masks_of_an_evaluation_hide_each_token_once() -> None:
    ids, real = texts(9)
    several = [mask_every(ids, real, every=7, first=first, mask_id=MASK) for first in range(1, 8)]
    times = sum(hidden.int() for _, hidden in several)
    assert torch.equal(times, can_hide(ids, real, MASK).int())
    for given, hidden in several:
        assert (given[hidden] == MASK).all()
        assert torch.equal(given[~hidden], ids[~hidden])


def test_a_fixed_share_of_each_row_is_hidden() -> None:
    ids, real = texts()
    possible = can_hide(ids, real, MASK)
    chance = torch.Generator().manual_seed(0)
    given, hidden = mask_some(ids, possible, share=0.15, most=8, mask_id=MASK, others=(0, MASK), generator=chance)
    assert not (hidden & ~possible).any()
    # 15 % of 1, 39 and 58 tokens: at least 1, the nearest whole number, at most 8.
    assert hidden.sum(1).tolist() == [1, 6, 8] * 200
    masked, same = given == MASK, given == ids
    assert (masked & hidden).sum() / hidden.sum() == pytest.approx(0.8, abs=0.02)
    assert (same & hidden).sum() / hidden.sum() == pytest.approx(0.1 + 0.1 / 30, abs=0.02)
    assert same[~hidden].all()
    assert set(given[hidden & ~masked & ~same].tolist()) == set(range(MASK))
    places = hidden.nonzero()[:, 1].float()
    assert places[places < 40].mean() == pytest.approx(20, abs=1.5)  # anywhere alike
    nothing = mask_some(ids, possible & False, share=0.15, most=8, mask_id=MASK, others=(0, MASK), generator=chance)
    assert not nothing.hidden.any()
    assert torch.equal(nothing.given, ids)
