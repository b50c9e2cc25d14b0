"""Recurrent layers over padded batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.checks import check_count
from saccade.layers.cell import CellState, RecurrentCell, glorot_by_gate
from saccade.layers.gru import GRUCell
from saccade.layers.lstm import LSTMCell, lstm_outputs
from saccade.layers.rcnn import RCNNCell
from saccade.registry import nearest

CellName = Literal["gru", "paper_gru", "lstm", "rcnn"]


def make_cell(cell: CellName, hidden_dim: int) -> RecurrentCell:
    """Builds a cell by name; `gru` resets after the product, as in PyTorch, `paper_gru` before it."""
    if cell == "gru":
        return GRUCell(hidden_dim=hidden_dim, reset="after")
    if cell == "paper_gru":
        return GRUCell(hidden_dim=hidden_dim, reset="before")
    if cell == "lstm":
        return LSTMCell(hidden_dim=hidden_dim)
    if cell == "rcnn":
        return RCNNCell(hidden_dim=hidden_dim)
    raise ValueError(f"Unknown cell {cell!r}.{nearest(cell, get_args(CellName))}")


class RecurrentLayer(nn.Module):
    """One layer of a recurrent network, in one direction or both, over batches padded at the end.

    Padding never affects real steps: the backward direction starts at each row's true end, and final states are those
    after the last real step (the first, backwards). A row with no real steps has zero final states.

    Shapes:
        inputs (batch, length, input_dim), mask bool (batch, length), real steps first
        -> outputs (batch, length, output_dim), final state: tensors (batch, output_dim), forward then backward.
    """

    def __init__(self, *, input_dim: int, hidden_dim: int, cell: CellName = "gru", bidirectional: bool = False) -> None:
        super().__init__()
        self.directions = 2 if bidirectional else 1
        self.cells = nn.ModuleList(make_cell(cell, hidden_dim) for _ in range(self.directions))
        self.output_dim = self.directions * hidden_dim
        self.input_proj = nn.Linear(input_dim, self.directions * self.cell.gates * hidden_dim)
        glorot_by_gate(self.input_proj, hidden_dim)

    @property
    def cell(self) -> RecurrentCell:
        """The cell of the forward direction."""
        cell = self.cells[0]
        assert isinstance(cell, RecurrentCell)
        return cell

    def step(self, inputs: Tensor, state: CellState) -> CellState:
        """One more forward step with inputs (batch, input_dim)."""
        return self.cell.step(self.input_proj(inputs), state)

    def run(self, inputs: Tensor, state: CellState | None = None) -> tuple[Tensor, ...]:
        """The states (batch, length, hidden_dim) after each step of the forward direction."""
        states: tuple[Tensor, ...] = self.cell(self.input_proj(inputs), state)
        return states

    def resume(
        self, inputs: Tensor, state: CellState | None = None, *, weight_drop: float = 0.0
    ) -> tuple[Tensor, CellState]:
        """The outputs (batch, length, hidden_dim) of the forward direction from a state on, and the last state.

        Args:
            inputs: (batch, length, input_dim), at least one step.
            state: before the first step; zeros by default.
            weight_drop: the share of the recurrent weights that training drops, the same at all steps.
        """
        weight, *others = self.cell.tensors()
        weight = F.dropout(weight, weight_drop, self.training)
        if isinstance(self.cell, LSTMCell) and type(self.input_proj) is nn.Linear and self.directions == 1:
            size = self.cell.hidden_dim
            bias = self.input_proj.bias + F.pad(others[0], (size, 2 * size))
            found = lstm_outputs(inputs, self.input_proj.weight, bias, weight, state)
            if found is not None:
                return found
        state = self.cell.zeros(inputs.shape[0], like=inputs) if state is None else state
        states = self.cell.sequence(self.input_proj(inputs).transpose(0, 1), state, weight, *others)
        return states[0].transpose(0, 1), tuple(each[-1] for each in states)

    def forward(self, inputs: Tensor, mask: Tensor) -> tuple[Tensor, CellState]:
        projected = self.input_proj(inputs)
        if self.directions == 1:
            states = self.cell(projected)
            return states[0], last_real(states, mask)
        forward, backward = projected.chunk(2, -1)
        both = torch.stack([forward.transpose(0, 1), reverse(backward, mask).transpose(0, 1)], dim=1)
        start = self.cell.zeros(2, inputs.shape[0], like=inputs)
        # In parallel: half the number of small operations, and a thread for each direction.
        tensors = [torch.stack(pair) for pair in zip(*(cell.tensors() for cell in self._cells()), strict=True)]
        if len(tensors) > 1:
            tensors[1] = tensors[1].unsqueeze(1)  # one bias for all rows of a direction
        states = self.cell.sequence(both, start, *tensors)
        ahead = tuple(tensor[:, 0].transpose(0, 1) for tensor in states)
        behind = tuple(tensor[:, 1].transpose(0, 1) for tensor in states)
        final = zip(last_real(ahead, mask), last_real(behind, mask), strict=True)
        outputs = torch.cat([ahead[0], reverse(behind[0], mask)], dim=-1)
        return outputs, tuple(torch.cat(pair, dim=-1) for pair in final)

    def outputs(self, inputs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The outputs and the last real one of each row, as those of `forward`, without the rest of a final state."""
        found = self._native(inputs, mask)
        if found is None:
            outputs, final = self(inputs, mask)
            return outputs, final[0]
        finals = [last_real((each,), mask)[0] for each in found]
        return torch.cat([found[0], *(reverse(each, mask) for each in found[1:])], dim=-1), torch.cat(finals, dim=-1)

    def _native(self, inputs: Tensor, mask: Tensor) -> list[Tensor] | None:
        """The outputs of each direction in the order in which it reads, by PyTorch's kernel, where that is faster."""
        if not isinstance(self.cell, LSTMCell) or type(self.input_proj) is not nn.Linear:
            return None
        size = self.cell.hidden_dim
        found: list[Tensor] = []
        weights, biases = (tensor.chunk(self.directions) for tensor in (self.input_proj.weight, self.input_proj.bias))
        for cell, weight, bias in zip(self._cells(), weights, biases, strict=True):
            recurrent, forget = cell.tensors()
            read = reverse(inputs, mask) if found else inputs
            outputs = lstm_outputs(read, weight, bias + F.pad(forget, (size, 2 * size)), recurrent)
            if outputs is None:
                return None
            found.append(outputs[0])
        return found

    def _cells(self) -> list[RecurrentCell]:
        return [cell for cell in self.cells if isinstance(cell, RecurrentCell)]


class RecurrentStack(nn.Module):
    """Stacked forward recurrent layers for decoders: all steps at once or one by one.

    Shapes:
        inputs (batch, steps, input_dim), one state per layer -> (batch, steps, hidden_dim).
    """

    def __init__(
        self, *, input_dim: int, hidden_dim: int, num_layers: int, cell: CellName = "lstm", dropout: float = 0.0
    ) -> None:
        super().__init__()
        check_count("num_layers", num_layers)
        self.layers = nn.ModuleList(
            RecurrentLayer(input_dim=hidden_dim if i else input_dim, hidden_dim=hidden_dim, cell=cell)
            for i in range(num_layers)
        )
        self.hidden_dim = hidden_dim
        self.dropout = dropout

    def _layers(self) -> list[RecurrentLayer]:
        return [layer for layer in self.layers if isinstance(layer, RecurrentLayer)]

    @property
    def first(self) -> RecurrentLayer:
        return self._layers()[0]

    @property
    def num_states(self) -> int:
        """The number of tensors in one layer's state."""
        return self.first.cell.num_states

    def forward(self, inputs: Tensor, states: Sequence[CellState]) -> Tensor:
        outputs = inputs
        for i, (layer, state) in enumerate(zip(self._layers(), states, strict=True)):
            if i:
                outputs = F.dropout(outputs, self.dropout, self.training)
            outputs = layer.run(outputs, state)[0]
        return outputs

    def step(self, projected: Tensor, states: Sequence[CellState]) -> tuple[Tensor, tuple[CellState, ...]]:
        """The top state and all states after one step, given the input already projected by the first layer."""
        first, *others = self._layers()
        after = [first.cell.step(projected, states[0])]
        for layer, state in zip(others, states[1:], strict=True):
            after.append(layer.step(F.dropout(after[-1][0], self.dropout, self.training), state))
        return after[-1][0], tuple(after)


def reverse(tensor: Tensor, mask: Tensor) -> Tensor:
    """Reverses the real steps of (batch, length, ...) and leaves the padding in place."""
    length = mask.shape[1]
    places = torch.arange(length, device=mask.device)
    ends = mask.sum(1, keepdim=True)
    index = torch.where(places < ends, ends - 1 - places, places)
    return tensor[torch.arange(tensor.shape[0], device=mask.device).unsqueeze(1), index]


def last_real(states: tuple[Tensor, ...], mask: Tensor) -> CellState:
    """The states (batch, length, dim) after each row's last real step, zero for rows without any."""
    if not mask.shape[1]:
        return tuple(tensor.new_zeros(tensor.shape[0], tensor.shape[-1]) for tensor in states)
    rows = torch.arange(mask.shape[0], device=mask.device)
    ends = mask.sum(1)
    real = (ends > 0).unsqueeze(1)
    return tuple(torch.where(real, tensor[rows, (ends - 1).clamp(min=0)], 0.0) for tensor in states)
