"""Alpha-entmax of the last axis for any alpha >= 1, with the gradient of alpha."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from saccade.kernels.modes import exporting, plain_only, recording, visible
from saccade.kernels.steps import over_steps

STEPS = 64
"""Enough for float64 and any alpha; on the CPU the search stops at convergence, usually after 6."""


def entmax_weights(scores: Tensor, alpha: Tensor, mask: Tensor | None) -> Tensor:
    r"""The weights, for scores (*batch, keys) in float32 or float64, alpha (*batch, 1) and mask (*batch, keys).

    .. math:: p_j = [1 + \beta (s_j - \lambda)]_+^{1 / \beta}, \qquad \beta = \alpha - 1, \quad \sum_j p_j = 1

    This form is not singular at alpha = 1, where it is softmax and lambda is the log-sum-exp.
    """
    if scores.shape[-1] == 0:
        return scores.clone()
    apply: Callable[..., Tensor] = compiled_entmax if recording() and not plain_only() else _Entmax.apply
    return apply(scores, alpha, mask)


class _Entmax(torch.autograd.Function):
    """In the form that torch.func needs; the search itself is not differentiated."""

    generate_vmap_rule = True

    @staticmethod
    def forward(scores: Tensor, alpha: Tensor, mask: Tensor | None) -> Tensor:
        return solve(scores, alpha - 1.0, mask)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(output, inputs[1])
        ctx.save_for_forward(output, inputs[1])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        return _derive(ctx, grads[0])

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> Tensor:
        weights, alpha = ctx.saved_tensors
        moved = torch.zeros_like(weights)
        if tangents[0] is not None:  # the Jacobian of the scores is symmetric
            moved = moved + scores_gradient(tangents[0], weights, alpha - 1.0)
        if tangents[1] is not None:
            moved = moved + tangents[1] * alpha_derivative(weights, alpha - 1.0)
        return moved


def _derive(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
    """In differentiable operations of the weights."""
    weights, alpha = ctx.saved_tensors
    grad_scores = scores_gradient(grad, weights, alpha - 1.0) if ctx.needs_input_grad[0] else None
    grad_alpha = alpha_gradient(grad, weights, alpha - 1.0) if ctx.needs_input_grad[1] else None
    return grad_scores, grad_alpha, None


def solve(scores: Tensor, beta: Tensor, mask: Tensor | None) -> Tensor:
    """Finds lambda by Newton's method within a bracket.

    Newton's method on the norm ((sum p)^beta - 1) / beta: up to alpha = 2 this is convex in lambda, so from the left it
    never passes the root, and nearly linear, so it converges fast. Beyond alpha = 2 every second step halves the
    bracket.
    """
    lowest = torch.finfo(scores.dtype).min / 4
    kept = scores if mask is None else torch.where(mask, scores, lowest)
    top = kept.amax(-1, keepdim=True)
    x = kept - top
    if mask is not None:
        x = torch.where(mask, x, lowest)
    positive = torch.where(beta > 0, beta, 1.0)
    left = torch.zeros_like(top)
    most = _log_count(x)
    right = torch.where(beta > 0, -torch.expm1(-beta * most) / positive, most)

    def advance(
        offset: Tensor, left: Tensor, right: Tensor, newtons: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The next offset and bracket, and the sum of the weights; Newton's method may be only for some rows."""
        weights, slopes = _weights(x, offset, beta, positive)
        total, slope = weights.sum(-1, keepdim=True), slopes.sum(-1, keepdim=True)
        log_total = total.log()
        scaled = torch.where(beta > 0, -torch.expm1(-beta * log_total) / positive, log_total)
        left, right = torch.where(total >= 1, offset, left), torch.where(total >= 1, right, offset)
        newton = offset + scaled * total / slope
        inside = (newton >= left) & (newton <= right)
        if newtons is not None:
            inside = inside & newtons
        return torch.where(inside, newton, (left + right) / 2), left, right, total

    offset = left
    if exporting():
        numbers = torch.arange(STEPS, device=x.device)
        convex = (beta <= 1).expand(top.shape)

        def numbered(number: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            return advance(state[0], state[1], state[2], convex | (number % 2 == 0))[:3]

        offset = over_steps(numbered, (left, left, right), numbers)[0][-1]
    for step in range(0 if exporting() else STEPS):
        following, left, right, total = advance(offset, left, right, beta <= 1 if step % 2 else None)
        if _found(total, following - offset, right - left, beta):
            break
        offset = following
    weights = _weights(x, offset, beta, positive)[0]
    weights = weights / weights.sum(-1, keepdim=True)
    return weights if mask is None else torch.where(mask, weights, 0.0)


def scores_gradient(grad: Tensor, weights: Tensor, beta: Tensor) -> Tensor:
    """s (g - sum s g / sum s), with s = p^(1 - beta) on the support."""
    support = weights > 0
    slopes = torch.where(support, ((1.0 - beta) * torch.where(support, weights, 1.0).log()).exp(), 0.0)
    total = slopes.sum(-1, keepdim=True)
    return slopes * (grad - (slopes * grad).sum(-1, keepdim=True) / torch.where(total > 0, total, 1.0))


def alpha_gradient(grad: Tensor, weights: Tensor, beta: Tensor) -> Tensor:
    """The gradient of alpha, one for each row."""
    return (grad * alpha_derivative(weights, beta)).sum(-1, keepdim=True)


def alpha_derivative(weights: Tensor, beta: Tensor) -> Tensor:
    r"""The derivative of the weights by alpha, without the cancellation in 1 / beta^2 of the usual form.

    .. math:: \frac{\partial p_j}{\partial \alpha} = \frac{p_j}{1 + \beta \langle \phi \rangle}
        (\langle \psi \rangle - \psi_j + \phi_j \langle l \rangle - l_j \langle \phi \rangle)

    with l = log p, phi = (exp(-beta l) - 1) / beta, psi = (phi + l) / beta, and means < > under p.
    """
    support = weights > 0
    log = torch.where(support, torch.where(support, weights, 1.0).log(), 0.0)
    first, second = _exponential_quotients(-beta * log)
    phi, psi = -log * first, log * log * second

    def mean(of: Tensor) -> Tensor:
        return (weights * of).sum(-1, keepdim=True)

    bracket = mean(psi) - psi + phi * mean(log) - log * mean(phi)
    return weights * bracket / (1.0 + beta * mean(phi))


def _weights(x: Tensor, offset: Tensor, beta: Tensor, positive: Tensor) -> tuple[Tensor, Tensor]:
    """The weights at this offset, and minus their derivatives."""
    distance = x - offset
    base = 1.0 + beta * distance
    alive = base > 0
    base = torch.where(alive, base, 1.0)
    log = torch.where(beta > 0, torch.where(alive, beta * distance, 0.0).log1p() / positive, distance)
    weights = torch.where(alive, log.exp(), 0.0)
    return weights, weights / base


def _exponential_quotients(x: Tensor) -> tuple[Tensor, Tensor]:
    """(e^x - 1) / x and (e^x - 1 - x) / x^2, from their series where x is small."""
    small = x.abs() < 0.03
    away = torch.where(small, 1.0, x)
    near = torch.where(small, x, 0.0)
    series = 1 / 2 + near * (1 / 6 + near * (1 / 24 + near * (1 / 120 + near * (1 / 720 + near * (1 / 5040)))))
    first = torch.where(small, 1.0 + near * series, torch.expm1(away) / away)
    return first, torch.where(small, series, (torch.expm1(away) - away) / (away * away))


def _log_count(x: Tensor) -> Tensor:
    """The logarithm of the number of keys, which an exported program does not know."""
    if exporting():
        return torch.ones_like(x).sum(-1, keepdim=True).log()
    return torch.tensor(float(x.shape[-1]), dtype=x.dtype, device=x.device).log()


def _found(total: Tensor, step: Tensor, bracket: Tensor, beta: Tensor) -> bool:
    """Whether every row has converged; checked only on the CPU, where the check costs nothing.

    A short step implies convergence only up to alpha = 2: beyond, the slope is infinite where a key enters the support.
    """
    if not visible(total):
        return False
    eps = torch.finfo(total.dtype).eps
    short = (step.abs() <= eps) & (beta <= 1)
    return bool((((total - 1.0).abs() <= 2 * eps) | short | (bracket <= eps) | (total == 0)).all())


# Compiled code would contain every step of the search: it calls this instead.


@torch.library.custom_op("saccade::entmax", mutates_args=())
def compiled_entmax(scores: Tensor, alpha: Tensor, mask: Tensor | None) -> Tensor:
    """`solve` as an operator."""
    return solve(scores, alpha - 1.0, mask)


@compiled_entmax.register_fake
def _(scores: Tensor, alpha: Tensor, mask: Tensor | None) -> Tensor:
    return scores.new_empty(scores.shape)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(output, inputs[1])


compiled_entmax.register_autograd(_derive, setup_context=_save)
