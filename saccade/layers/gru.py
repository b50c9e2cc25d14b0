"""Gated recurrent units, in the papers' form and in the form with a single product per step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from saccade.kernels.modes import exporting
from saccade.kernels.steps import over_steps
from saccade.layers.cell import CellState, RecurrentCell, sum_of_products


class GRUCell(RecurrentCell):
    r"""A gated recurrent unit without its input projection, which is computed for all steps at once.

    .. math:: r = \sigma(x_r + U_r h), \quad z = \sigma(x_z + U_z h), \quad h' = z \odot h + (1 - z) \odot n

    .. math:: n = \tanh(x_n + U_n (r \odot h)) \;\text{ or }\; n = \tanh(x_n + r \odot (U_n h + b))

    The first candidate, `reset="before"` the product, is that of Cho et al. and Bahdanau et al.; the second,
    `reset="after"` it, is that of cuDNN and `torch.nn.GRU`, with one product per step instead of two. They are
    different functions, so trained weights are not interchangeable. Bahdanau's update gate is 1 - z.

    Shapes:
        projected (*batch, 3 * hidden_dim): x_r, x_z, x_n concatenated, with their biases; state (h,), h (*batch,
        hidden_dim).

    Reference:
        Cho et al. (2014), arXiv:1406.1078, section 2.3.
    """

    gates = 3

    def __init__(self, *, hidden_dim: int, reset: Literal["before", "after"] = "after") -> None:
        super().__init__(hidden_dim=hidden_dim)
        if reset not in ("before", "after"):
            raise ValueError(f"reset must be 'before' or 'after' the product, got {reset!r}.")
        self.reset = reset
        self.weight = nn.Parameter(torch.empty(3 * hidden_dim, hidden_dim))
        self.bias = nn.Parameter(torch.empty(hidden_dim)) if reset == "after" else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.weight,) if self.bias is None else (self.weight, self.bias)

    def step(self, projected: Tensor, state: CellState) -> CellState:
        return (gru_step(projected, state[0], self.weight, self.bias),)

    def sequence(self, projected: Tensor, state: CellState, *tensors: Tensor) -> tuple[Tensor, ...]:
        return (gru_sequence(projected, state[0], *tensors),)


def gru_step(projected: Tensor, hidden: Tensor, weight: Tensor, inner: Tensor | None = None) -> Tensor:
    """One step; `inner` (…, hidden) is added to U_n h inside the reset gate; None resets before the product."""
    size = hidden.shape[-1]
    if inner is None:
        reset, update = (projected[..., : 2 * size] + hidden @ weight[..., : 2 * size, :].mT).sigmoid().chunk(2, -1)
        candidate = (projected[..., 2 * size :] + (reset * hidden) @ weight[..., 2 * size :, :].mT).tanh()
    else:
        product = hidden @ weight.mT
        reset, update = (projected[..., : 2 * size] + product[..., : 2 * size]).sigmoid().chunk(2, -1)
        candidate = (projected[..., 2 * size :] + reset * (product[..., 2 * size :] + inner)).tanh()
    return candidate + update * (hidden - candidate)


def gru_sequence_reference(projected: Tensor, hidden: Tensor, weight: Tensor, inner: Tensor | None = None) -> Tensor:
    """The states after each step of projected (steps, *batch, 3 * hidden), one `gru_step` at a time."""
    if exporting():
        return over_steps(lambda row, state: (gru_step(row, state[0], weight, inner),), (hidden,), projected)[0]
    states = []
    for row in projected.unbind(0):
        hidden = gru_step(row, hidden, weight, inner)
        states.append(hidden)
    return torch.stack(states) if states else hidden.new_empty(0, *hidden.shape)


def gru_sequence(projected: Tensor, hidden: Tensor, weight: Tensor, inner: Tensor | None = None) -> Tensor:
    """`gru_sequence_reference`, with the weight gradients computed in one product after the last step.

    A leading dimension of hidden (directions, batch, hidden) and weight (directions, 3 * hidden, hidden) runs several
    units in parallel.
    """
    if torch.compiler.is_compiling() or not len(projected):
        return gru_sequence_reference(projected, hidden, weight, inner)
    with torch.autocast(projected.device.type, enabled=False):
        projected, hidden = projected.to(weight.dtype), hidden.to(weight.dtype)
        run: Callable[..., Tensor] = _ResetBefore.apply if inner is None else _ResetAfter.apply
        return run(projected, hidden, weight, *(() if inner is None else (inner.expand_as(hidden),)))


class _ResetAfter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, projected: Tensor, hidden: Tensor, weight: Tensor, inner: Tensor) -> Tensor:
        size, steps = hidden.shape[-1], len(projected)
        states = projected.new_empty(steps + 1, *hidden.shape)
        states[0] = hidden
        gates = projected.new_empty(steps, *hidden.shape[:-1], 3 * size)
        inside = torch.empty_like(states[1:])
        transposed = weight.mT
        for row, before, after, gate, within in zip(
            projected.unbind(), states[:-1].unbind(), states[1:].unbind(), gates.unbind(), inside.unbind(), strict=True
        ):
            product = torch.matmul(before, transposed)
            reset, update, candidate = gate.chunk(3, -1)
            torch.add(row[..., : 2 * size], product[..., : 2 * size], out=gate[..., : 2 * size]).sigmoid_()
            torch.add(product[..., 2 * size :], inner, out=within)
            torch.addcmul(row[..., 2 * size :], reset, within, out=candidate).tanh_()
            torch.lerp(candidate, before, update, out=after)
        ctx.save_for_backward(states, gates, inside, weight)
        return states[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        states, gates, inside, weight = ctx.saved_tensors
        reset, update, candidate = gates.chunk(3, -1)
        before = states[:-1]
        # Each gate's gradient is the state's gradient times a factor that is computed for all steps at once.
        to_candidate = (1 - update) * (1 - candidate * candidate)
        to_reset = to_candidate * inside * reset * (1 - reset)
        to_update = (before - candidate) * update * (1 - update)
        factors = torch.stack([to_reset, to_update, to_candidate * reset], dim=-2)
        products = torch.empty_like(factors)
        hidden = torch.empty_like(before)
        carried = torch.zeros_like(states[0])
        for t in reversed(range(len(grad))):
            torch.add(grad[t], carried, out=hidden[t])
            torch.mul(factors[t], hidden[t].unsqueeze(-2), out=products[t])
            carried = torch.matmul(products[t].flatten(-2), weight).addcmul_(hidden[t], update[t])
        products = products.flatten(-2)
        size = hidden.shape[-1]
        inputs = torch.cat([products[..., : 2 * size], to_candidate * hidden], dim=-1)
        return inputs, carried, sum_of_products(products, before), products[..., 2 * size :].sum(0)


class _ResetBefore(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, projected: Tensor, hidden: Tensor, weight: Tensor) -> Tensor:
        size, steps = hidden.shape[-1], len(projected)
        states = projected.new_empty(steps + 1, *hidden.shape)
        states[0] = hidden
        gates = projected.new_empty(steps, *hidden.shape[:-1], 3 * size)
        kept = torch.empty_like(states[1:])
        to_gates, to_candidate = weight[..., : 2 * size, :].mT, weight[..., 2 * size :, :].mT
        for row, before, after, gate, left in zip(
            projected.unbind(), states[:-1].unbind(), states[1:].unbind(), gates.unbind(), kept.unbind(), strict=True
        ):
            reset, update, candidate = gate.chunk(3, -1)
            product = torch.matmul(before, to_gates)
            torch.add(row[..., : 2 * size], product, out=gate[..., : 2 * size]).sigmoid_()
            torch.mul(reset, before, out=left)
            torch.add(row[..., 2 * size :], torch.matmul(left, to_candidate), out=candidate).tanh_()
            torch.lerp(candidate, before, update, out=after)
        ctx.save_for_backward(states, gates, kept, weight)
        return states[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        states, gates, kept, weight = ctx.saved_tensors
        reset, update, candidate = gates.chunk(3, -1)
        before = states[:-1]
        size = before.shape[-1]
        to_candidate = (1 - update) * (1 - candidate * candidate)
        to_update = (before - candidate) * update * (1 - update)
        to_reset = before * reset * (1 - reset)
        inputs = torch.empty_like(gates)
        carried = torch.zeros_like(states[0])
        for t in reversed(range(len(grad))):
            hidden = grad[t] + carried
            of_reset, of_update, of_candidate = inputs[t].chunk(3, -1)
            torch.mul(hidden, to_candidate[t], out=of_candidate)
            torch.mul(hidden, to_update[t], out=of_update)
            left = torch.matmul(of_candidate, weight[..., 2 * size :, :])
            torch.mul(left, to_reset[t], out=of_reset)
            carried = torch.matmul(inputs[t][..., : 2 * size], weight[..., : 2 * size, :])
            carried.addcmul_(hidden, update[t]).addcmul_(left, reset[t])
        of_gates = sum_of_products(inputs[..., : 2 * size], before)
        of_weight = torch.cat([of_gates, sum_of_products(inputs[..., 2 * size :], kept)], dim=-2)
        return inputs, carried, of_weight
