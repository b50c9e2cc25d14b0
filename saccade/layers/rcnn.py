"""Recurrent convolutional units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from saccade.layers.cell import Cell, CellState, sum_of_products


class RCNNCell(Cell):
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


def rcnn_step(projected: Tensor, state: CellState, weight: Tensor, bias: Tensor) -> CellState:
    """One step."""
    hidden, single, pair = state
    gate, first, second = projected.chunk(3, -1)
    kept = (gate + hidden @ weight.mT).sigmoid()
    pair = torch.lerp(single + second, pair, kept)
    return (pair + bias).tanh(), torch.lerp(first, single, kept), pair


def rcnn_sequence_reference(projected: Tensor, state: CellState, weight: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    """h, c_1 and c_2 after each step of projected (steps, *batch, 3 * hidden), one `rcnn_step` at a time."""
    states = []
    for row in projected.unbind(0):
        state = rcnn_step(row, state, weight, bias)
        states.append(state)
    if not states:
        return tuple(tensor.new_empty(0, *tensor.shape) for tensor in state)
    return tuple(torch.stack(several) for several in zip(*states, strict=True))


def rcnn_sequence(projected: Tensor, state: CellState, weight: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    """`rcnn_sequence_reference`, with the weight gradient computed in one product after the last step.

    A leading dimension of the states (directions, batch, hidden) and the weight (directions, hidden, hidden) runs
    several units in parallel.
    """
    if torch.compiler.is_compiling() or not len(projected):
        return rcnn_sequence_reference(projected, state, weight, bias)
    with torch.autocast(projected.device.type, enabled=False):
        dtype = weight.dtype
        apply: Callable[..., tuple[Tensor, ...]] = _RCNN.apply
        start = [tensor.to(dtype) for tensor in state]
        return apply(projected.to(dtype), *start, weight, bias.expand_as(start[0]))


class _RCNN(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, projected: Tensor, hidden: Tensor, single: Tensor, pair: Tensor, weight: Tensor, bias: Tensor
    ) -> tuple[Tensor, ...]:
        size, steps = hidden.shape[-1], len(projected)
        states, singles, pairs = (projected.new_empty(steps + 1, *hidden.shape) for _ in range(3))
        states[0], singles[0], pairs[0] = hidden, single, pair
        gates = torch.empty_like(states[1:])
        transposed = weight.mT
        for t, (row, gate) in enumerate(zip(projected.unbind(), gates.unbind(), strict=True)):
            torch.add(row[..., :size], torch.matmul(states[t], transposed), out=gate).sigmoid_()
            torch.lerp(row[..., size : 2 * size], singles[t], gate, out=singles[t + 1])
            torch.lerp(singles[t] + row[..., 2 * size :], pairs[t], gate, out=pairs[t + 1])
            torch.add(pairs[t + 1], bias, out=states[t + 1]).tanh_()
        ctx.save_for_backward(projected, states, singles, pairs, gates, weight)
        return states[1:], singles[1:], pairs[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_states: Tensor, of_singles: Tensor, of_pairs: Tensor) -> tuple[Tensor, ...]:
        projected, states, singles, pairs, gates, weight = ctx.saved_tensors
        size = weight.shape[-1]
        # The gradient of a gate's input is those of c_1 and c_2 times factors that are computed for all steps at once.
        slope = gates * (1 - gates)
        by_single = (singles[:-1] - projected[..., size : 2 * size]) * slope
        by_pair = (pairs[:-1] - singles[:-1] - projected[..., 2 * size :]) * slope
        new = 1 - gates
        squashed = 1 - states[1:] * states[1:]
        inputs, of_bias = torch.empty_like(projected), torch.empty_like(gates)
        hidden, single, pair = (torch.zeros_like(states[0]) for _ in range(3))
        for t in reversed(range(len(projected))):
            of_gate, of_first, of_second = inputs[t].chunk(3, -1)
            torch.mul(of_states[t] + hidden, squashed[t], out=of_bias[t])
            pair = pair + of_pairs[t] + of_bias[t]
            single = single + of_singles[t]
            torch.mul(single, by_single[t], out=of_gate).addcmul_(pair, by_pair[t])
            torch.mul(single, new[t], out=of_first)
            torch.mul(pair, new[t], out=of_second)
            hidden = torch.matmul(of_gate, weight)
            single = (single * gates[t]).add_(of_second)
            pair = pair * gates[t]
        return inputs, hidden, single, pair, sum_of_products(inputs[..., :size], states[:-1]), of_bias.sum(0)
