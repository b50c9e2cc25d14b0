import pytest
import torch

from saccade.aggregations import RenormalizedMean, create

from .examples import BATCH, KEYS, QUERIES, assert_empty_rows_are_safe, example


def test_is_kims_gamma_normalisation():
    lam = 2.0
    _, weights, values, mask = example(mass_one=False)
    context = create("renormalized_mean", scale=lam)(weights, values, mask=mask)
    for b in range(BATCH):
        for i in range(QUERIES):
            gamma = sum(weights[b, i, j] for j in range(KEYS)) / lam
            expected = (
                sum(weights[b, i, j] / gamma * values[b, j] for j in range(KEYS)) if gamma > 0 else 0 * values[0, 0]
            )
            torch.testing.assert_close(context[b, i], expected)


def test_mass_one_changes_nothing():
    _, weights, values, _ = example()
    torch.testing.assert_close(RenormalizedMean()(weights, values), weights @ values)


@pytest.mark.parametrize("mass", [1e-18, 1e-30, 1e-38, 0.0])
def test_tiny_mass_is_finite(mass):
    weights = torch.full((3, 7), mass, requires_grad=True)
    values = 100 * torch.randn(7, 2)
    context = RenormalizedMean()(weights, values)
    context.sum().backward()
    assert context.isfinite().all()
    assert weights.grad.isfinite().all()
    if mass == 1e-18:
        torch.testing.assert_close(context, values.mean(0).expand(3, 2), atol=1e-4, rtol=1e-4)
    if mass == 0.0:
        assert (context == 0).all()


def test_half_precision_sums_exactly():
    weights = torch.full((1, 1009), 1.0, dtype=torch.bfloat16)
    context = RenormalizedMean()(weights, torch.ones(1009, 2, dtype=torch.bfloat16))
    torch.testing.assert_close(context, torch.ones(1, 2, dtype=torch.bfloat16), atol=0.01, rtol=0)


def test_gradcheck_and_empty_rows():
    _, weights, values, _ = example(mass_one=False)
    inputs = [weights[:2].clone().requires_grad_(), values[:2].clone().requires_grad_()]
    inputs[0].data[0, 1] = 0.3
    assert torch.autograd.gradcheck(RenormalizedMean(scale=3.0), inputs)
    assert_empty_rows_are_safe(RenormalizedMean())


def test_refuses_a_scale_of_zero():
    with pytest.raises(ValueError, match="scale must be above 0, got 0"):
        RenormalizedMean(scale=0)
