"""Continuous softmax and continuous sparsemax."""

import math

import pytest
import torch

from saccade import Attention
from saccade.scores import DotScore
from saccade.selections import ContinuousSoftmax, ContinuousSparsemax
from saccade.selections.continuous import _without_repeats

KINDS = [ContinuousSoftmax, ContinuousSparsemax]
both = pytest.mark.parametrize("kind", KINDS)


def quadrature(function, low, high, steps=2_001):
    """The trapezoidal rule."""
    t = torch.linspace(low, high, steps, dtype=torch.float64)
    return torch.trapezoid(function(t), t)


def bump(t, centre, width):
    return math.exp(-((t - centre) ** 2) / (2 * width**2)) / (width * math.sqrt(2 * math.pi))


def ridge_weights(selection, size):
    """G (size, num_basis) = F^T (F F^T + r I)^-1, with F built entry by entry and inverted outright."""
    each = selection.num_basis // len(selection.widths)
    basis = [(n / max(each - 1, 1), width) for width in selection.widths for n in range(each)]
    values = [[bump((i + 0.5) / size, centre, width) for i in range(size)] for centre, width in basis]
    f = torch.tensor(values, dtype=torch.float64)
    gram = f @ f.T + selection.ridge * torch.eye(len(basis), dtype=torch.float64)
    return f.T @ torch.linalg.inv(gram), basis


@both
def test_parameters_are_mean_and_variance_of_the_softmax(kind):
    scores = torch.randn(3, 5, 7, dtype=torch.float64)
    distribution = kind()(scores)
    weights = torch.softmax(scores, -1)
    t = (torch.arange(7) + 0.5) / 7
    mean = (weights * t).sum(-1)
    torch.testing.assert_close(distribution.mu.squeeze(-1), mean)
    torch.testing.assert_close(distribution.sigma2.squeeze(-1), (weights * t**2).sum(-1) - mean**2)


@both
def test_parameters_from_the_query(kind):
    selection = kind(query_dim=5).double()
    query = torch.randn(2, 3, 5, dtype=torch.float64)
    distribution = selection(torch.randn(2, 3, 7, dtype=torch.float64), query=query)
    out = query @ selection.density_proj.weight.T + selection.density_proj.bias
    torch.testing.assert_close(distribution.mu, 1 / (1 + torch.exp(-out[..., :1])))
    torch.testing.assert_close(distribution.sigma2, torch.log(1 + torch.exp(out[..., 1:])))
    again = selection(torch.randn(2, 3, 7, dtype=torch.float64), query=query)
    torch.testing.assert_close(again.coefficients, distribution.coefficients)


@both
def test_marginals_are_the_masses_of_the_cells(kind):
    distribution = kind()(torch.randn(3, 7, dtype=torch.float64))
    for i in range(3):

        def density(t, i=i):
            return distribution.density(t)[i]

        expected = [quadrature(density, j / 7, (j + 1) / 7) for j in range(7)]
        torch.testing.assert_close(distribution.marginals[i], torch.stack(expected), rtol=1e-6, atol=1e-8)
        inside = quadrature(density, 0.0, 1.0)
        assert distribution.marginals[i].sum().item() == pytest.approx(inside.item(), abs=1e-6)


@both
def test_coefficients_are_the_ridge_regression_of_the_values(kind):
    selection = kind(num_basis=6, widths=(0.1, 0.5))
    distribution = selection(torch.randn(3, 7, dtype=torch.float64))
    g, basis = ridge_weights(selection, 7)
    for i in range(3):
        t = torch.linspace(-3, 4, 14_001, dtype=torch.float64)
        p = distribution.density(t)[i]
        expected = torch.stack(
            [
                torch.trapezoid(p * torch.exp(-((t - m) ** 2) / (2 * s**2)) / (s * math.sqrt(2 * math.pi)), t)
                for m, s in basis
            ]
        )
        torch.testing.assert_close(distribution.coefficients[i], g @ expected, rtol=1e-5, atol=1e-7)


@both
def test_context_reads_a_smooth_signal_where_the_density_is(kind):
    # With many keys the regression follows the signal, and the context is its mean under the density.
    size = 211
    t = (torch.arange(size, dtype=torch.float64) + 0.5) / size
    signal = torch.sin(3 * t)
    scores = -((t - 0.4) ** 2) / (2 * 0.01)
    distribution = kind()(scores.unsqueeze(0))
    context = (distribution.coefficients @ signal).item()
    grid = torch.linspace(0, 1, 20_001, dtype=torch.float64)
    expected = torch.trapezoid(distribution.density(grid)[0] * torch.sin(3 * grid), grid).item()
    assert context == pytest.approx(expected, abs=2e-3)


@both
def test_masked_keys_have_no_place(kind):
    scores, mask = torch.randn(2, 3, 11, dtype=torch.float64), torch.arange(11) % 3 != 0
    masked, removed = kind()(scores, mask), kind()(scores[..., mask])
    torch.testing.assert_close(masked.marginals[..., mask], removed.marginals)
    torch.testing.assert_close(masked.coefficients[..., mask], removed.coefficients)
    assert (masked.marginals[..., ~mask] == 0).all()
    assert (masked.coefficients[..., ~mask] == 0).all()


@both
def test_mask_of_each_query(kind):
    scores, mask = torch.randn(2, 3, 11, dtype=torch.float64), torch.rand(2, 3, 11) > 0.4
    together = kind()(scores, mask)
    for b in range(2):
        for i in range(3):
            alone = kind()(scores[b, i : i + 1], mask[b, i : i + 1])
            torch.testing.assert_close(together.coefficients[b, i : i + 1], alone.coefficients)
            torch.testing.assert_close(together.marginals[b, i : i + 1], alone.marginals)


def test_regression_is_solved_once_for_what_a_mask_repeats():
    mask = torch.arange(7) < torch.tensor([5, 7, 0])[:, None, None]
    assert _without_repeats(mask.expand(3, 11, 7)).shape == (3, 1, 7)
    assert _without_repeats(torch.ones((), dtype=torch.bool).expand(3, 11, 7)).shape == (1, 1, 7)
    assert _without_repeats(torch.ones(3, 11, 7, dtype=torch.bool)).shape == (3, 11, 7)


@both
def test_gradients(kind):
    scores = torch.randn(2, 5, dtype=torch.float64, requires_grad=True)
    mask = torch.arange(5) < torch.tensor([5, 3])[:, None]
    selection = kind(num_basis=6)

    def outputs(scores):
        distribution = selection(scores, mask)
        return distribution.marginals, distribution.coefficients, distribution.mu, distribution.sigma2

    assert torch.autograd.gradcheck(outputs, (scores,))


@both
@pytest.mark.parametrize("size", [1, 2])
def test_very_sharp_densities_stay_finite(kind, size):
    scores = (1e4 * torch.arange(float(size))).expand(3, size).clone().requires_grad_()
    distribution = kind()(scores)
    assert (distribution.sigma2 >= 1e-6).all()
    torch.testing.assert_close(distribution.marginals[:, -1], torch.ones(3))
    distribution.coefficients.sum().backward()
    assert scores.grad.isfinite().all()


@both
def test_attention_reads_by_the_coefficients(kind):
    attention = Attention(score=DotScore(), selection=kind())
    query, keys, values = torch.randn(2, 3, 5), torch.randn(2, 7, 5), torch.randn(2, 7, 11)
    reading = attention(query, keys, values)
    torch.testing.assert_close(reading.context, reading.selection.coefficients @ values)
    torch.testing.assert_close(reading.weights, reading.selection.marginals)


@both
def test_parts_join(kind):
    parts = [kind()(torch.randn(2, 1, 5)) for _ in range(3)]
    joined = type(parts[0]).cat(parts)
    torch.testing.assert_close(joined.coefficients, torch.cat([part.coefficients for part in parts], dim=-2))
    torch.testing.assert_close(joined.variance, torch.cat([part.variance for part in parts], dim=-2))


@both
def test_export_does_not_rely_on_the_strides_of_its_example(kind):
    class Weights(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.selection = kind(num_basis=6)

        def forward(self, scores, mask):
            return self.selection(scores, mask).coefficients

    module = Weights().eval()
    scores = torch.randn(2, 3, 5)
    exported = torch.export.export(module, (scores, torch.ones(1, 1, 5, dtype=torch.bool).expand(2, 3, 5))).module()
    mask = torch.arange(5) < torch.tensor([5, 3])[:, None, None].expand(2, 3, 1)
    torch.testing.assert_close(exported(scores, mask), module(scores, mask))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_basis": 5}, "num_basis must be a positive multiple of the number of widths, 2, got 5"),
        ({"widths": ()}, "widths must be one or more numbers above 0"),
        ({"widths": (0.1, -1.0)}, "widths must be one or more numbers above 0"),
        ({"ridge": 0.0}, r"ridge must be above 0, got 0\.0"),
    ],
)
def test_arguments_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        ContinuousSoftmax(**arguments)


@both
def test_query_is_needed_with_query_dim(kind):
    with pytest.raises(ValueError, match="query=None"):
        kind(query_dim=5)(torch.randn(3, 7))
