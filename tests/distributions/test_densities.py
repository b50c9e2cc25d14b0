import math

import pytest
import torch

from saccade.distributions import Gaussian, TruncatedParabola

KINDS = [Gaussian, TruncatedParabola]
PARAMETERS = [(0.3, 0.02), (0.9, 0.5), (0.5, 1e-4)]
each = pytest.mark.parametrize("kind", KINDS)
at = pytest.mark.parametrize(("mu", "sigma2"), PARAMETERS)


def make(kind, mu, sigma2):
    return kind(torch.tensor(mu, dtype=torch.float64), torch.tensor(sigma2, dtype=torch.float64))


def grid(kind, mu, sigma2, steps=40_001):
    reach = 12 * math.sqrt(sigma2) if kind is Gaussian else (1.5 * sigma2) ** (1 / 3)
    return torch.linspace(mu - reach, mu + reach, steps, dtype=torch.float64)


@each
@at
def test_mass_mean_and_variance(kind, mu, sigma2):
    density, t = make(kind, mu, sigma2), grid(kind, mu, sigma2)
    p = density.density(t)
    assert torch.trapezoid(p, t).item() == pytest.approx(1.0, abs=1e-8)
    assert torch.trapezoid(p * t, t).item() == pytest.approx(mu, abs=1e-8)
    variance = torch.trapezoid(p * (t - mu) ** 2, t).item()
    assert density.variance.item() == pytest.approx(variance, rel=1e-6)


@each
@at
def test_cumulative_is_the_integral(kind, mu, sigma2):
    density, t = make(kind, mu, sigma2), grid(kind, mu, sigma2)
    integral = torch.cumulative_trapezoid(density.density(t), t)
    torch.testing.assert_close(density.cumulative(t)[1:], integral, rtol=0, atol=1e-8)


@each
@at
@pytest.mark.parametrize("width", [0.02, 0.1, 0.5])
def test_expected_bump_is_the_integral(kind, mu, sigma2, width):
    density, t = make(kind, mu, sigma2), grid(kind, mu, sigma2)
    for centre in (0.0, 0.4, 1.0):
        bump = torch.exp(-((t - centre) ** 2) / (2 * width**2)) / (width * math.sqrt(2 * math.pi))
        expected = torch.trapezoid(density.density(t) * bump, t)
        found = density.expected_bump(
            torch.tensor(centre, dtype=torch.float64), torch.tensor(width, dtype=torch.float64)
        )
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-8)


@at
def test_parabola_is_that_of_the_paper(mu, sigma2):
    density = make(TruncatedParabola, mu, sigma2)
    sigma, a = math.sqrt(sigma2), (3 * sigma2 / 2) ** (1 / 3)
    threshold = -0.5 * (3 / (2 * sigma)) ** (2 / 3)
    assert density.half_width.item() == pytest.approx(a)
    assert density.threshold.item() == pytest.approx(threshold)
    assert density.variance.item() == pytest.approx(a**2 / 5)
    t = torch.linspace(mu - 2 * a, mu + 2 * a, 101, dtype=torch.float64)
    literal = (-((t - mu) ** 2) / (2 * sigma2) - threshold).clamp(min=0)
    torch.testing.assert_close(density.density(t), literal)
    assert (density.density(t)[(t - mu).abs() > 1.001 * a] == 0).all()


@each
def test_gradients(kind):
    mu = torch.tensor([[0.3], [0.8]], dtype=torch.float64, requires_grad=True)
    sigma2 = torch.tensor([[0.02], [0.3]], dtype=torch.float64, requires_grad=True)
    centres, widths = torch.rand(5, dtype=torch.float64), torch.rand(5, dtype=torch.float64) + 0.1

    def outputs(mu, sigma2):
        density = kind(mu, sigma2)
        return density.expected_bump(centres, widths), density.cumulative(centres), density.variance

    assert torch.autograd.gradcheck(outputs, (mu, sigma2))


@pytest.mark.parametrize("kind", KINDS)
def test_gradient_is_the_covariance_of_the_paper(kind):
    # With natural parameters theta = (mu / sigma2, -1 / (2 sigma2)) and statistics phi = (t, t^2): under p for
    # softmax, and uniform over the support, times its length, for sparsemax.
    theta = torch.tensor([2.0, -4.0], dtype=torch.float64, requires_grad=True)
    sigma2 = -1 / (2 * theta[1])
    density = kind(theta[0] * sigma2, sigma2)
    centre, width = torch.tensor(0.4, dtype=torch.float64), torch.tensor(0.2, dtype=torch.float64)
    (gradient,) = torch.autograd.grad(density.expected_bump(centre, width), theta)
    t = grid(kind, (theta[0] * sigma2).item(), sigma2.item())
    psi = torch.exp(-((t - centre) ** 2) / (2 * width**2)) / (width * math.sqrt(2 * math.pi))
    weight = density.density(t).detach() if kind is Gaussian else torch.ones_like(t)
    total = torch.trapezoid(weight, t)
    for statistic, found in zip((t, t**2), gradient, strict=True):
        product = torch.trapezoid(weight * statistic * psi, t)
        means = torch.trapezoid(weight * statistic, t) * torch.trapezoid(weight * psi, t)
        assert found.item() == pytest.approx((product - means / total).item(), rel=1e-6)
