"""How a decoder starts from several sources: their final states, combined layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from saccade.layers.cell import CellState, glorot_by_gate
from saccade.registry import nearest

CombinationName = Literal["basic", "child_sum"]


class Combination(nn.Module):
    """Starts each decoder layer from the final states of the same layer of all sources.

    A missing source has zero states.

    Args:
        starts: for each source, what turns its summary into the states of all layers: `CopyStates`, or a
            `ProjectSummary` without a bias, which keeps a missing source at zero.
        hidden_dim: features of a state.
        num_layers, num_states: of the decoder; an LSTM's layer has two states, h and c.
    """

    def __init__(self, *, starts: Sequence[nn.Module], hidden_dim: int, num_layers: int, num_states: int) -> None:
        super().__init__()
        self.starts = nn.ModuleList(starts)
        self.num_layers, self.num_states = num_layers, num_states

    def forward(self, summary: Sequence[Any]) -> tuple[CellState, ...]:
        each = [start(own) for start, own in zip(self.starts, summary, strict=True)]
        return tuple(self.combine(number, states) for number, states in enumerate(zip(*each, strict=True)))

    def combine(self, layer: int, states: Sequence[CellState]) -> CellState:
        """The state of one layer, from that of each source."""
        raise NotImplementedError


class BasicCombination(Combination):
    r"""A projection of all h, and the sum of all c.

    .. math:: h = \tanh(W [h_1; \dots; h_K]), \qquad c = \sum_k c_k

    Shapes:
        for each source and layer, states (batch, hidden_dim) -> for each layer, states (batch, hidden_dim).

    Reference:
        Zoph & Knight (2016), arXiv:1601.00710, section 3.1.
    """

    def __init__(self, *, starts: Sequence[nn.Module], hidden_dim: int, num_layers: int, num_states: int) -> None:
        super().__init__(starts=starts, hidden_dim=hidden_dim, num_layers=num_layers, num_states=num_states)
        projs = [nn.Linear(len(starts) * hidden_dim, hidden_dim, bias=False) for _ in range(num_layers)]
        for proj in projs:
            nn.init.xavier_uniform_(proj.weight)
        self.projs = nn.ModuleList(projs)

    def combine(self, layer: int, states: Sequence[CellState]) -> CellState:
        hidden, *rest = zip(*states, strict=True)
        return (torch.tanh(self.projs[layer](torch.cat(hidden, dim=-1))), *(sum_of(cells) for cells in rest))


class ChildSumCombination(Combination):
    r"""One step of an LSTM whose previous states are those of all sources, each with its own forget gate.

    .. math:: i, o = \sigma\Big(\sum_k W_k^{i,o} h_k + b^{i,o}\Big), \quad
        u = \tanh\Big(\sum_k W_k^u h_k + b^u\Big), \quad f_k = \sigma(W_k^f h_k + b^f)

    .. math:: c = i \odot u + \sum_k f_k \odot c_k, \qquad h = o \odot \tanh(c)

    Shapes:
        for each source and layer, h and c (batch, hidden_dim) -> for each layer, h and c (batch, hidden_dim).

    Reference:
        Zoph & Knight (2016), arXiv:1601.00710, section 3.2, after the child-sum tree LSTM of Tai et al. (2015).
    """

    def __init__(self, *, starts: Sequence[nn.Module], hidden_dim: int, num_layers: int, num_states: int) -> None:
        super().__init__(starts=starts, hidden_dim=hidden_dim, num_layers=num_layers, num_states=num_states)
        if num_states != 2:
            raise ValueError("combination='child_sum' combines the h and c of LSTMs: use cell='lstm', or 'basic'.")
        gates = [nn.Linear(len(starts) * hidden_dim, 3 * hidden_dim) for _ in range(num_layers)]
        forget = [nn.Parameter(torch.empty(len(starts), hidden_dim, hidden_dim)) for _ in range(num_layers)]
        for gate, matrices in zip(gates, forget, strict=True):
            glorot_by_gate(gate, hidden_dim)
            for own in matrices:
                nn.init.xavier_uniform_(own)
        self.gates, self.forget = nn.ModuleList(gates), nn.ParameterList(forget)
        self.forget_bias = nn.ParameterList(nn.Parameter(torch.ones(hidden_dim)) for _ in range(num_layers))

    def combine(self, layer: int, states: Sequence[CellState]) -> CellState:
        hidden, cells = zip(*states, strict=True)
        enter, leave, candidate = self.gates[layer](torch.cat(hidden, dim=-1)).chunk(3, -1)
        weights, bias = self.forget[layer], self.forget_bias[layer]
        kept = [torch.sigmoid(h @ own.T + bias) * c for h, c, own in zip(hidden, cells, weights, strict=True)]
        cell = enter.sigmoid() * candidate.tanh() + sum_of(kept)
        return leave.sigmoid() * cell.tanh(), cell


COMBINATIONS: dict[str, type[Combination]] = {"basic": BasicCombination, "child_sum": ChildSumCombination}


def make_combination(
    name: CombinationName, *, starts: Sequence[nn.Module], hidden_dim: int, num_layers: int, num_states: int
) -> Combination:
    """The combination of this name."""
    if name not in COMBINATIONS:
        raise ValueError(f"Unknown combination {name!r}.{nearest(name, get_args(CombinationName))}")
    return COMBINATIONS[name](starts=starts, hidden_dim=hidden_dim, num_layers=num_layers, num_states=num_states)


def sum_of(tensors: Sequence[Tensor]) -> Tensor:
    """The sum of tensors of one shape."""
    return torch.stack(list(tensors)).sum(0)
