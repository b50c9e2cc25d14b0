import math

import torch

from saccade.distributions import Categorical
from saccade.losses import entropy_bonus

from .examples import BATCH, STEPS, assert_reductions, example, valid


def test_is_the_negative_entropy_of_valid_steps():
    weights, steps, _ = example()
    items = torch.zeros(BATCH, STEPS, dtype=torch.float64)
    for b in range(BATCH):
        for t in valid(b)[0]:
            items[b, t] = sum(weights[b, t, i].item() * math.log(weights[b, t, i].item()) for i in valid(b)[1])
    assert_reductions(
        lambda reduction: entropy_bonus(Categorical(weights), step_mask=steps, reduction=reduction), items, count=8
    )
