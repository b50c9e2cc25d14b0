"""Recurrent layers that only read what was picked."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.aggregations import Aggregation
from saccade.checks import check_count
from saccade.distributions import Distribution
from saccade.kernels.modes import exporting
from saccade.layers.gathering import pack
from saccade.layers.recurrent import CellName, RecurrentLayer


class ReadPicked(Aggregation):
    r"""The states of recurrent layers that read the picked values in order, and pass over the others.

    .. math:: s_j = z_j \, f(v_j, s_{j-1}) + (1 - z_j) \, s_{j-1}, \qquad c = [h^{(1)}_n; ...; h^{(L)}_n]

    h is the output in the state s, and a layer above reads the h_j of the one below. With the pooling "average", c has
    the means of the h_j of the picked values instead of the last ones. A row that picks nothing has zeros. Where no
    gradient passes through z, the layers only step over the picked values.

    Shapes:
        weights (*batch, queries, keys), values (*batch, keys, value_dim)
        -> context (*batch, queries, num_layers * hidden_dim).

    Reference:
        Lei et al. (2016), arXiv:1606.04155, section 4.1, the encoder.

    Args:
        value_dim: features of a value.
        hidden_dim: features of a state.
        num_layers: L.
        cell: of the layers.
        pooling: "last", as in the paper, or "average".
        dropout: applied between layers.
    """

    def __init__(
        self,
        *,
        value_dim: int,
        hidden_dim: int,
        num_layers: int = 2,
        cell: CellName = "rcnn",
        pooling: Literal["last", "average"] = "last",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_count("num_layers", num_layers)
        if pooling not in ("last", "average"):
            raise ValueError(f"pooling must be 'last' or 'average', got {pooling!r}.")
        self.layers = nn.ModuleList(
            RecurrentLayer(input_dim=hidden_dim if i else value_dim, hidden_dim=hidden_dim, cell=cell)
            for i in range(num_layers)
        )
        self.hidden_dim = hidden_dim
        self.average = pooling == "average"
        self.dropout = dropout

    def weights(self, selection: Distribution) -> Tensor:
        return selection.draw

    def output_dim(self, value_dim: int) -> int:
        return len(self.layers) * self.hidden_dim

    def forward(
        self,
        weights: Tensor,
        values: Tensor,
        *,
        query: Tensor | None = None,
        scores: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        rows = math.prod(weights.shape[:-1])
        flat = values.unsqueeze(-3).expand(*weights.shape, values.shape[-1]).reshape(rows, *values.shape[-2:])
        z = weights.reshape(rows, weights.shape[-1])
        gradually = exporting() or weights.requires_grad or not is_hard(z)
        read = self._read_gated if gradually else self._read_packed
        return read(flat, z).reshape(*weights.shape[:-1], self.output_dim(values.shape[-1]))

    def _layers(self) -> list[RecurrentLayer]:
        return [layer for layer in self.layers if isinstance(layer, RecurrentLayer)]

    def _read_packed(self, values: Tensor, z: Tensor) -> Tensor:
        inputs, mask, _ = pack(values, z > 0)
        last = []
        for number, layer in enumerate(self._layers()):
            if number:
                inputs = F.dropout(inputs, self.dropout, self.training)
            inputs, final = layer(inputs, mask)
            last.append(_average(inputs, mask.to(inputs.dtype)) if self.average else final[0])
        return torch.cat(last, dim=-1)

    def _read_gated(self, values: Tensor, z: Tensor) -> Tensor:
        """All values, with gradients also for those that were not picked."""
        inputs, last = values, []
        for number, layer in enumerate(self._layers()):
            if number:
                inputs = F.dropout(inputs, self.dropout, self.training)
            states = gated(layer, inputs, z)
            if self.average:
                # A state after each value as if it were picked, so that the gradient of z says what picking it adds.
                before = tuple(F.pad(each[:, :-1], (0, 0, 1, 0)) for each in states)
                last.append(_average(layer.step(inputs, before)[0], z))
            elif not exporting() and not inputs.shape[1]:
                last.append(inputs.new_zeros(len(values), self.hidden_dim))
            else:
                last.append(states[0][:, -1])
            inputs = states[0]
        return torch.cat(last, dim=-1)


def _average(states: Tensor, z: Tensor) -> Tensor:
    """(rows, hidden): the mean of the picked states (rows, length, hidden), zero if none is."""
    picked = (z.unsqueeze(1) @ states).squeeze(1)
    return picked / z.sum(1, keepdim=True).clamp(min=1.0)


def gated(layer: RecurrentLayer, inputs: Tensor, z: Tensor) -> tuple[Tensor, ...]:
    """The states (rows, length, hidden) of a layer that takes each step to the extent of z (rows, length)."""
    cell, projected = layer.cell, layer.input_proj(inputs)
    state = cell.zeros(inputs.shape[0], like=projected)
    states = cell.gated(projected.transpose(0, 1), state, z.unsqueeze(-1).transpose(0, 1))
    return tuple(each.transpose(0, 1) for each in states)


def is_hard(z: Tensor) -> bool:
    """Whether each position was picked or not, without fractions."""
    return bool(((z == 0) | (z == 1)).all())
