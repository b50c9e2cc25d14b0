"""Linear recurrences along the last axis, in parallel."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from saccade.kernels.modes import exporting, transforming
from saccade.kernels.steps import over_steps


def linear_recurrence_reference(decay: Float[Tensor, "*b n"], inputs: Float[Tensor, "*b n"]) -> Float[Tensor, "*b n"]:
    """The plain recurrence: x_j = decay_j x_{j-1} + inputs_j, from x_{-1} = 0, one entry after another."""
    decay, inputs = _broadcast(decay, inputs)
    x = torch.zeros_like(inputs[..., 0]) if inputs.shape[-1] else inputs
    steps = []
    for j in range(inputs.shape[-1]):
        x = decay[..., j] * x + inputs[..., j]
        steps.append(x)
    return torch.stack(steps, dim=-1) if steps else torch.zeros_like(inputs)


def linear_recurrence(decay: Float[Tensor, "*b n"], inputs: Float[Tensor, "*b n"]) -> Float[Tensor, "*b n"]:
    """`linear_recurrence_reference` in O(log n) steps.

    It uses only sums and products, no divisions or logarithms, so decays of exactly 0 or 1 and any length are safe.
    """
    decay, inputs = _broadcast(decay, inputs)
    if transforming():
        return _doubling(decay, inputs)
    if exporting():  # the number of doublings would depend on the number of entries
        rows = (decay.movedim(-1, 0), inputs.movedim(-1, 0))
        start = (torch.zeros_like(inputs[..., 0]),)
        return over_steps(lambda row, x: (row[0] * x[0] + row[1],), start, rows)[0].movedim(0, -1)
    result: Tensor = _LinearRecurrence.apply(decay, inputs)  # type: ignore[no-untyped-call]
    return result


def _broadcast(decay: Tensor, inputs: Tensor) -> tuple[Tensor, Tensor]:
    shape = torch.broadcast_shapes(decay.shape, inputs.shape)
    return decay.expand(shape), inputs.expand(shape)


def _doubling(decay: Tensor, inputs: Tensor) -> Tensor:
    """After the step of reach r, entry j holds the recurrence over the last 2r inputs up to j."""
    size = inputs.shape[-1]
    reach = 1
    while reach < size:
        inputs = inputs + decay * F.pad(inputs, (reach, 0))[..., :size]
        decay = decay * F.pad(decay, (reach, 0))[..., :size]
        reach *= 2
    return inputs


class _LinearRecurrence(torch.autograd.Function):
    """Saves only the decays and the result: the gradient is the same recurrence in reverse."""

    @staticmethod
    def forward(ctx: Any, decay: Tensor, inputs: Tensor) -> Tensor:
        x = _doubling(decay, inputs)
        ctx.save_for_backward(decay, x)
        return x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        decay, x = ctx.saved_tensors
        size = x.shape[-1]
        following = F.pad(decay, (0, 1))[..., 1:]
        before = F.pad(x, (1, 0))[..., :size]
        total = linear_recurrence(following.flip(-1), grad.flip(-1)).flip(-1)
        return total * before, total
