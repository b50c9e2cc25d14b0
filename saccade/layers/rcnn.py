"""Recurrent convolutional units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from saccade.kernels import rcnn
from saccade.kernels.modes import exporting
from saccade.kernels.steps import over_steps
from saccade.layers.cell import CellState, RecurrentCell, sum_of_products


class RCNNCell(RecurrentCell):
    r"""A recurrent convolution over pairs of words that need not be neighbours, without its input projection.

    .. math:: \lambda = \sigma(x_\lambda + U h), \qquad c_1' = \lambda \odot c_1 + (1 - \lambda) \odot x_1

    .. math:: c_2' = \lambda \odot c_2 + (1 - \lambda) \odot (c_1 + x_2), \qquad h' = \tanh(c_2' + b)

    c_1 and c_2 are running averages over single words and over pairs; the gate \lambda decides how fast they forget.

    Shapes:
        projected (*batch, 3 * hidden_dim): x_\lambda, x_1, x_2 concatenated, with their biases; state (h, c_1, c_2),
        each (*batch, hidden_dim).

    Reference:
        Lei et al. (2015), "Molding CNNs for text", and Lei et al. (2016), arXiv:1606.04155, section 4.2, order 2: x_1
        is W_1 x and x_2 is W_2 x, there without biases.
    """

    gates = 3
    num_states = 3

    def __init__(self, *, hidden_dim: int) -> None:
        super().__init__(hidden_dim=hidden_dim)
        self.weight = nn.Parameter(torch.empty(hidden_dim, hidden_dim))
        self.bias = nn.Parameter(torch.empty(hidden_dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        nn.init.zeros_(self.bias)

    def tensors(self) -> tuple[Tensor, ...]:
        return self.weight, self.bias

    def step(self, projected: Tensor, state: CellState) -> CellState:
        return rcnn_step(projected, state, self.weight, self.bias)

    def sequence(self, projected: Tensor, state: CellState, *tensors: Tensor) -> tuple[Tensor, ...]:
        return rcnn_sequence(projected, state, *tensors)

    def gated(self, projected: Tensor, state: CellState, gates: Tensor) -> tuple[Tensor, ...]:
        return rcnn_sequence(projected, state, self.weight, self.bias, gates)


def rcnn_step(projected: Tensor, state: CellState, weight: Tensor, bias: Tensor) -> CellState:
    """One step."""
    hidden, single, pair = state
    gate, first, second = projected.chunk(3, -1)
    kept = (gate + hidden @ weight.mT).sigmoid()
    pair = torch.lerp(single + second, pair, kept)
    return (pair + bias).tanh(), torch.lerp(first, single, kept), pair


def _exported_step(weight: Tensor, bias: Tensor) -> Callable[..., CellState]:
    def step(row: tuple[Tensor, ...], state: CellState) -> CellState:
        after = rcnn_step(row[0], state, weight, bias)
        return after if len(row) == 1 else tuple(map(torch.lerp, state, after, [row[1]] * 3))

    return step


def rcnn_sequence_reference(
    projected: Tensor, state: CellState, weight: Tensor, bias: Tensor, kept: Tensor | None = None
) -> tuple[Tensor, ...]:
    """h, c_1 and c_2 after each step, one `rcnn_step` at a time; see `rcnn_sequence`."""
    if exporting():
        rows = (projected,) if kept is None else (projected, kept)
        return over_steps(_exported_step(weight, bias), state, rows)
    states = []
    for t, row in enumerate(projected.unbind(0)):
        after = rcnn_step(row, state, weight, bias)
        state = after if kept is None else tuple(map(torch.lerp, state, after, [kept[t]] * 3))
        states.append(state)
    if not states:
        return tuple(tensor.new_empty(0, *tensor.shape) for tensor in state)
    return tuple(torch.stack(several) for several in zip(*states, strict=True))


def rcnn_sequence(
    projected: Tensor, state: CellState, weight: Tensor, bias: Tensor, kept: Tensor | None = None
) -> tuple[Tensor, ...]:
    """`rcnn_sequence_reference`, by a C kernel where there is one, with the weight gradient as one product at the end.

    A leading dimension of the states (directions, batch, hidden) and the weight (directions, hidden, hidden) runs
    several units in parallel.

    Args:
        projected: (steps, *batch, 3 * hidden).
        state: before the first step.
        weight: U.
        bias: b.
        kept: (steps, *batch, 1), how much of each step is taken: 1 for all of it, 0 to stay in the state before it.
    """
    if torch.compiler.is_compiling() or not len(projected):
        return rcnn_sequence_reference(projected, state, weight, bias, kept)
    with torch.autocast(projected.device.type, enabled=False):
        dtype = weight.dtype
        apply: Callable[..., tuple[Tensor, ...]] = _RCNN.apply
        start = [tensor.to(dtype) for tensor in state]
        taken = None if kept is None else kept.to(dtype)
        return apply(projected.to(dtype), *start, weight, bias.expand_as(start[0]), taken)


class _RCNN(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        projected: Tensor,
        hidden: Tensor,
        single: Tensor,
        pair: Tensor,
        weight: Tensor,
        bias: Tensor,
        kept: Tensor | None,
    ) -> tuple[Tensor, ...]:
        ctx.native = rcnn.usable(projected, hidden, weight, kept)
        if ctx.native:
            run = rcnn.forward(projected, hidden, single, pair, weight, bias, kept)
            ctx.save_for_backward(projected, *run, weight, kept)
            return run.states[1:], run.singles[1:], run.pairs[1:]
        size, steps = hidden.shape[-1], len(projected)
        states, singles, pairs = (projected.new_empty(steps + 1, *hidden.shape) for _ in range(3))
        states[0], singles[0], pairs[0] = hidden, single, pair
        gates = torch.empty_like(states[1:])
        new = states[1:] if kept is None else torch.empty_like(gates)
        transposed = weight.mT
        for t, (row, gate) in enumerate(zip(projected.unbind(), gates.unbind(), strict=True)):
            torch.add(row[..., :size], torch.matmul(states[t], transposed), out=gate).sigmoid_()
            torch.lerp(row[..., size : 2 * size], singles[t], gate, out=singles[t + 1])
            torch.lerp(singles[t] + row[..., 2 * size :], pairs[t], gate, out=pairs[t + 1])
            torch.add(pairs[t + 1], bias, out=new[t]).tanh_()
            if kept is not None:
                torch.lerp(singles[t], singles[t + 1], kept[t], out=singles[t + 1])
                torch.lerp(pairs[t], pairs[t + 1], kept[t], out=pairs[t + 1])
                torch.lerp(states[t], new[t], kept[t], out=states[t + 1])
        ctx.save_for_backward(projected, states, singles, pairs, gates, new, weight, kept)
        return states[1:], singles[1:], pairs[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_states: Tensor, of_singles: Tensor, of_pairs: Tensor) -> tuple[Tensor | None, ...]:
        projected, states, singles, pairs, gates, new, weight, kept = ctx.saved_tensors
        size = weight.shape[-1]
        if ctx.native:
            run = rcnn.RCNNStates(states, singles, pairs, gates, new)
            grads = (of_states, of_singles, of_pairs)
            inputs, before, of_bias, of_kept = rcnn.backward(projected, run, weight, kept, grads)
            of_weight = sum_of_products(inputs[..., :size], states[:-1])
            return inputs, *before, of_weight, of_bias, of_kept
        # The gradient of a gate's input is those of c_1 and c_2 times factors that are computed for all steps at once.
        slope = gates * (1 - gates)
        to_single = singles[:-1] - projected[..., size : 2 * size]
        to_pair = pairs[:-1] - singles[:-1] - projected[..., 2 * size :]
        by_single, by_pair = to_single * slope, to_pair * slope
        enters = 1 - gates
        squashed = 1 - new * new
        inputs, of_bias = torch.empty_like(projected), torch.empty_like(gates)
        of_kept = None if kept is None else torch.empty_like(kept)
        hidden, single, pair = (torch.zeros_like(states[0]) for _ in range(3))
        for t in reversed(range(len(projected))):
            of_gate, of_first, of_second = inputs[t].chunk(3, -1)
            hidden, single, pair = of_states[t] + hidden, of_singles[t] + single, of_pairs[t] + pair
            if kept is not None and of_kept is not None:
                moved = hidden * (new[t] - states[t]) - enters[t] * (single * to_single[t] + pair * to_pair[t])
                torch.sum(moved, -1, keepdim=True, out=of_kept[t])
                left = tuple(each * (1 - kept[t]) for each in (hidden, single, pair))
                hidden, single, pair = (each * kept[t] for each in (hidden, single, pair))
            torch.mul(hidden, squashed[t], out=of_bias[t])
            pair = pair + of_bias[t]
            torch.mul(single, by_single[t], out=of_gate).addcmul_(pair, by_pair[t])
            torch.mul(single, enters[t], out=of_first)
            torch.mul(pair, enters[t], out=of_second)
            hidden = torch.matmul(of_gate, weight)
            single = (single * gates[t]).add_(of_second)
            pair = pair * gates[t]
            if kept is not None:
                hidden, single, pair = (each + rest for each, rest in zip((hidden, single, pair), left, strict=True))
        of_weight = sum_of_products(inputs[..., :size], states[:-1])
        return inputs, hidden, single, pair, of_weight, of_bias.sum(0), of_kept
