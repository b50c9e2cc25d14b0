"""Attention of distinct prime sizes with padding."""

import torch

BATCH, STEPS, KEYS = 3, 5, 7
STEP_LENGTHS, KEY_LENGTHS = (5, 3, 0), (7, 2, 4)


def example(*, seed=0):
    """Weights of mass one over the valid keys, zero elsewhere, and both masks."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(BATCH, STEPS, KEYS, generator=generator, dtype=torch.float64)
    steps = torch.arange(STEPS) < torch.tensor(STEP_LENGTHS)[:, None]
    keys = torch.arange(KEYS) < torch.tensor(KEY_LENGTHS)[:, None]
    weights = torch.softmax(scores.masked_fill(~keys[:, None], -torch.inf), -1)
    return weights, steps, keys


def valid(b):
    return range(STEP_LENGTHS[b]), range(KEY_LENGTHS[b])


def assert_reductions(loss, items, count):
    """`loss(reduction)` agrees with the literal loss of each item; `count` of them are valid."""
    items = torch.as_tensor(items, dtype=torch.float64)
    torch.testing.assert_close(loss("none"), items)
    torch.testing.assert_close(loss("sum"), items.sum())
    torch.testing.assert_close(loss("mean"), items.sum() / max(count, 1))


def assert_padding_does_not_matter(loss, weights, steps, keys):
    """Garbage at invalid steps and keys changes neither the loss nor its gradient, which is zero there."""
    inside = steps.unsqueeze(-1) & keys.unsqueeze(-2)
    results = []
    for garbage in (0.0, 17.0):
        given = torch.where(inside, weights, garbage).detach().requires_grad_()
        total = loss(given)
        total.backward()
        assert (given.grad[~inside] == 0).all()
        assert given.grad.isfinite().all()
        results.append((total.detach(), given.grad))
    torch.testing.assert_close(results[0], results[1])
