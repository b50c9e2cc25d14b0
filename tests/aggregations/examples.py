"""Weights, values and masks of distinct prime sizes."""

import torch

BATCH, QUERIES, KEYS, VALUE_DIM = 3, 5, 7, 2
DTYPES = (torch.float32, torch.float64, torch.bfloat16)


def softmax_weights(scores, mask):
    return torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), -1).masked_fill(~mask, 0.0)


def example(*, seed=0, mass_one=True):
    """Scores, weights, values and a mask whose last batch row, and one row of the first, allow nothing."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(BATCH, QUERIES, KEYS, generator=generator, dtype=torch.float64)
    values = torch.randn(BATCH, KEYS, VALUE_DIM, generator=generator, dtype=torch.float64)
    mask = torch.rand(BATCH, QUERIES, KEYS, generator=generator) < 0.7
    mask[0, 1] = False
    mask[2] = False
    weights = softmax_weights(scores, mask) if mass_one else torch.sigmoid(scores) * mask
    return scores, weights, values, mask


def assert_empty_rows_are_safe(aggregation, **extra):
    """Zero context and zero gradients where nothing may be attended, in every dtype."""
    for dtype in DTYPES:
        scores, _, values, mask = example()
        scores = (1e4 * scores).to(dtype).requires_grad_()
        values = values.to(dtype).requires_grad_()
        weights = softmax_weights(scores, mask)
        aggregation = aggregation.to(dtype)
        more = {name: tensor.to(dtype) for name, tensor in extra.items()}
        context = aggregation(weights, values, scores=scores, mask=mask, **more)
        assert context.dtype == dtype
        assert (context[2] == 0).all()
        if not aggregation.joins_queries:
            assert (context[0, 1] == 0).all()
        context.float().square().sum().backward()
        assert context.isfinite().all()
        assert values.grad.isfinite().all()
        assert (values.grad[2] == 0).all()
        if scores.grad is not None:
            assert scores.grad.isfinite().all()
            assert (scores.grad[0, 1] == 0).all()
            assert (scores.grad[2] == 0).all()
