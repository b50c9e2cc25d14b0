"""The base class of recurrent cells."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from saccade.checks import check_count
from saccade.kernels.modes import exporting
from saccade.kernels.steps import over_steps

CellState = tuple[Tensor, ...]
"""A recurrent state, the output first: (h,) for a GRU and (h, c) for an LSTM."""


class RecurrentCell(nn.Module):
    """The recurrent half of a cell; its inputs are already projected, with all gates concatenated.

    A new cell implements `tensors`, `step` and `sequence`, and overrides `gated` if it has a faster way.
    """

    gates: int
    """The number of gates: the projected inputs have `gates * hidden_dim` features."""

    num_states: int = 1
    weight: nn.Parameter

    def __init__(self, *, hidden_dim: int) -> None:
        super().__init__()
        check_count("hidden_dim", hidden_dim)
        self.hidden_dim = hidden_dim

    def reset_parameters(self) -> None:
        """Makes each gate's recurrent weight orthogonal, as in the papers, so that states neither grow nor fade."""
        for gate in self.weight.data.split(self.hidden_dim):
            nn.init.orthogonal_(gate)

    def tensors(self) -> tuple[Tensor, ...]:
        """The parameters in the form that `sequence` takes; parallel cells stack theirs."""
        raise NotImplementedError

    def step(self, projected: Tensor, state: CellState) -> CellState:
        """The state after one step; projected (*batch, gates * hidden_dim)."""
        raise NotImplementedError

    def sequence(self, projected: Tensor, state: CellState, *tensors: Tensor) -> tuple[Tensor, ...]:
        """The states (steps, *batch, hidden_dim) after each step of projected (steps, *batch, gates * hidden_dim)."""
        raise NotImplementedError

    def gated(self, projected: Tensor, state: CellState, gates: Tensor) -> tuple[Tensor, ...]:
        """The states of `sequence`, if each step is only taken to the extent of its gate.

        Args:
            projected: (steps, batch, gates * hidden_dim).
            state: before the first step.
            gates: (steps, batch, 1): 1 takes the whole step, 0 stays in the state before it.
        """

        def step(row: tuple[Tensor, Tensor], before: CellState) -> CellState:
            after = self.step(row[0], before)
            return tuple(torch.lerp(old, new, row[1]) for old, new in zip(before, after, strict=True))

        if exporting():
            return over_steps(step, state, (projected, gates))
        found = []
        for row in zip(projected.unbind(), gates.unbind(), strict=True):
            state = step(row, state)
            found.append(state)
        if not found:
            return tuple(each.new_empty(0, *each.shape) for each in state)
        return tuple(torch.stack(several) for several in zip(*found, strict=True))

    def zeros(self, *batch: int, like: Tensor) -> CellState:
        """The initial state, all zeros."""
        return (like.new_zeros(*batch, self.hidden_dim),) * self.num_states

    def forward(self, projected: Tensor, state: CellState | None = None) -> tuple[Tensor, ...]:
        """All steps: projected (batch, steps, gates * hidden_dim) -> states (batch, steps, hidden_dim)."""
        state = self.zeros(projected.shape[0], like=projected) if state is None else state
        states = self.sequence(projected.transpose(0, 1), state, *self.tensors())
        return tuple(tensor.transpose(0, 1) for tensor in states)


def sum_of_products(left: Tensor, right: Tensor) -> Tensor:
    """The gradient of a weight used at every step: the sum over steps and batch of left x right.

    left (steps, *directions, batch, m), right (steps, *directions, batch, n) -> (*directions, m, n).
    """
    if left.dim() == 3:
        return left.flatten(0, 1).T @ right.flatten(0, 1)
    return left.transpose(0, 1).flatten(1, 2).mT @ right.transpose(0, 1).flatten(1, 2)


def glorot_by_gate(linear: nn.Linear, out_features: int) -> None:
    """Glorot initialisation for each gate's matrix rather than for the concatenation; biases zero."""
    bound = math.sqrt(6.0 / (linear.in_features + out_features))
    with torch.no_grad():
        linear.weight.uniform_(-bound, bound)
        if linear.bias is not None:
            linear.bias.zero_()
