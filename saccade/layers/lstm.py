"""Long short-term memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from saccade.kernels.modes import exporting, plain_only
from saccade.kernels.steps import over_steps
from saccade.layers.cell import CellState, RecurrentCell, sum_of_products


class LSTMCell(RecurrentCell):
    r"""A long short-term memory without its input projection, which is computed for all steps at once.

    .. math:: i, f, o = \sigma(x_{i,f,o} + U_{i,f,o} h), \quad g = \tanh(x_g + U_g h), \quad
        c' = f \odot c + i \odot g, \quad h' = o \odot \tanh(c')

    A constant `forget_bias` inside f, 1 by default, lets an untrained cell remember.

    Shapes:
        projected (*batch, 4 * hidden_dim): x_i, x_f, x_g, x_o concatenated, with their biases; state (h, c), each
        (*batch, hidden_dim).

    Reference:
        Hochreiter and Schmidhuber (1997) with the forget gate of Gers et al. (2000); no peepholes, as in
        `torch.nn.LSTM`. Forget bias: Jozefowicz et al. (2015).
    """

    gates = 4
    num_states = 2

    def __init__(self, *, hidden_dim: int, forget_bias: float = 1.0) -> None:
        super().__init__(hidden_dim=hidden_dim)
        self.weight = nn.Parameter(torch.empty(4 * hidden_dim, hidden_dim))
        self.bias = nn.Parameter(torch.empty(hidden_dim))
        self.forget_bias = forget_bias
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        nn.init.constant_(self.bias, self.forget_bias)

    def tensors(self) -> tuple[Tensor, ...]:
        return self.weight, self.bias

    def step(self, projected: Tensor, state: CellState) -> CellState:
        return lstm_step(projected, state[0], state[1], self.weight, self.bias)

    def sequence(self, projected: Tensor, state: CellState, *tensors: Tensor) -> tuple[Tensor, ...]:
        weight, bias = tensors
        size = self.hidden_dim
        bias = nn.functional.pad(bias, (size, 2 * size))  # the forget gate is the second of four
        return lstm_sequence(projected + bias, state[0], state[1], weight)


def lstm_step(
    projected: Tensor,
    hidden: Tensor,
    cell: Tensor,
    weight: Tensor,
    forget_bias: Tensor | None = None,
    added: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """One step; `added` is one more term of the new c."""
    enter, forget, candidate, leave = (projected + hidden @ weight.mT).chunk(4, -1)
    if forget_bias is not None:
        forget = forget + forget_bias
    cell = forget.sigmoid() * cell + enter.sigmoid() * candidate.tanh()
    if added is not None:
        cell = cell + added
    return leave.sigmoid() * cell.tanh(), cell


def lstm_sequence_reference(projected: Tensor, hidden: Tensor, cell: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """h and c after each step of projected (steps, *batch, 4 * hidden), one `lstm_step` at a time."""
    if exporting():
        found = over_steps(lambda row, state: lstm_step(row, state[0], state[1], weight), (hidden, cell), projected)
        return found[0], found[1]
    states = []
    for row in projected.unbind(0):
        hidden, cell = lstm_step(row, hidden, cell, weight)
        states.append((hidden, cell))
    if not states:
        return hidden.new_empty(0, *hidden.shape), cell.new_empty(0, *cell.shape)
    return torch.stack([h for h, _ in states]), torch.stack([c for _, c in states])


def lstm_sequence(projected: Tensor, hidden: Tensor, cell: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """`lstm_sequence_reference`, with the weight gradient computed in one product after the last step.

    A leading dimension of the states (directions, batch, hidden) and the weight (directions, 4 * hidden, hidden) runs
    several cells in parallel.
    """
    if torch.compiler.is_compiling() or not len(projected):
        return lstm_sequence_reference(projected, hidden, cell, weight)
    with torch.autocast(projected.device.type, enabled=False):
        dtype = weight.dtype
        apply: Callable[..., tuple[Tensor, Tensor]] = _LSTM.apply
        return apply(projected.to(dtype), hidden.to(dtype), cell.to(dtype), weight)


def lstm_outputs(
    inputs: Tensor, weight_in: Tensor, bias: Tensor, weight: Tensor, start: CellState | None = None
) -> tuple[Tensor, CellState] | None:
    """h after each step of inputs (batch, steps, input_dim), and the last state, by PyTorch's own kernel.

    It fuses products and gates, which for small states takes less than half the time of `lstm_sequence`. None if it
    cannot be used.

    Args:
        inputs: before their projection.
        weight_in, bias: of the projection, (4 * hidden, input_dim) and (4 * hidden,), with the forget bias.
        weight: of the recurrent product, (4 * hidden, hidden).
        start: the state before the first step; zeros by default.
    """
    same = all(tensor.dtype == torch.float32 and tensor.device.type == "cpu" for tensor in (inputs, weight_in, weight))
    traced = torch.compiler.is_compiling() or plain_only() or torch.is_autocast_enabled("cpu")
    if not same or not inputs.numel() or traced:
        return None
    zeros = inputs.new_zeros(1, len(inputs), weight.shape[1])
    begun = (zeros, zeros) if start is None else tuple(each.unsqueeze(0) for each in start)
    weights = [weight_in, weight, bias, torch.zeros_like(bias)]
    outputs, hidden, cell = torch.lstm(inputs, begun, weights, True, 1, 0.0, torch.is_grad_enabled(), False, True)
    return outputs, (hidden.squeeze(0), cell.squeeze(0))


class _LSTM(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, projected: Tensor, hidden: Tensor, cell: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        size, steps = hidden.shape[-1], len(projected)
        states = projected.new_empty(steps + 1, *hidden.shape)
        cells = torch.empty_like(states)
        states[0], cells[0] = hidden, cell
        gates = projected.new_empty(steps, *hidden.shape[:-1], 4 * size)
        squashed = torch.empty_like(cells[1:])
        transposed = weight.mT
        for t, (row, gate) in enumerate(zip(projected.unbind(), gates.unbind(), strict=True)):
            torch.add(row, torch.matmul(states[t], transposed), out=gate)
            enter, forget, candidate, leave = gate.chunk(4, -1)
            gate[..., : 2 * size].sigmoid_()
            candidate.tanh_()
            leave.sigmoid_()
            torch.mul(forget, cells[t], out=cells[t + 1]).addcmul_(enter, candidate)
            torch.tanh(cells[t + 1], out=squashed[t])
            torch.mul(leave, squashed[t], out=states[t + 1])
        ctx.save_for_backward(states, cells, gates, squashed, weight)
        return states[1:], cells[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_states: Tensor, grad_cells: Tensor) -> tuple[Tensor, ...]:
        states, cells, gates, squashed, weight = ctx.saved_tensors
        enter, forget, candidate, leave = gates.chunk(4, -1)
        # Each gate's gradient is that of c (of h for the last gate) times a factor computed for all steps at once.
        factors = torch.stack(
            [
                candidate * enter * (1 - enter),
                cells[:-1] * forget * (1 - forget),
                enter * (1 - candidate * candidate),
                squashed * leave * (1 - leave),
            ],
            dim=-2,
        )
        through = leave * (1 - squashed * squashed)
        inputs = torch.empty_like(factors)
        hidden, cell = torch.zeros_like(states[0]), torch.zeros_like(cells[0])
        for t in reversed(range(len(grad_states))):
            hidden = hidden + grad_states[t]
            cell = (cell + grad_cells[t]).addcmul_(hidden, through[t])
            torch.mul(factors[t][..., :3, :], cell.unsqueeze(-2), out=inputs[t][..., :3, :])
            torch.mul(factors[t][..., 3, :], hidden, out=inputs[t][..., 3, :])
            hidden = torch.matmul(inputs[t].flatten(-2), weight)
            cell = cell * forget[t]
        inputs = inputs.flatten(-2)
        return inputs, hidden, cell, sum_of_products(inputs, states[:-1])
