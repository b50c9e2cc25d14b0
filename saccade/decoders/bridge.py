"""Bridges from the encoder's summary to the initial states of a recurrent decoder."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from saccade.encoders.base import top_of
from saccade.layers.cell import CellState


class CopyStates(nn.Module):
    """Starts each decoder layer from the final state of the same encoder layer.

    Reference:
        Sutskever et al. (2014), arXiv:1409.3215, section 2.
    """

    def forward(self, summary: Any) -> tuple[CellState, ...]:
        if isinstance(summary, Tensor):
            raise TypeError("CopyStates needs a recurrent encoder with the decoder's layers; use ProjectSummary.")
        return tuple(summary)


class ProjectSummary(nn.Module):
    r"""Starts each layer from its own projection of one vector.

    .. math:: s_0 = \tanh(W s)

    s is the last `summary_dim` features of the summary: for a bidirectional encoder, the last half belongs to the
    backward direction, as in the paper. An LSTM's c starts at zero, or with `all_states` from a projection as well.
    Without a bias, a summary of zeros gives states of zeros.

    Reference:
        Bahdanau et al. (2015), arXiv:1409.0473, appendix A.2.2.
    """

    def __init__(
        self,
        *,
        summary_dim: int,
        hidden_dim: int,
        num_layers: int = 1,
        num_states: int = 1,
        all_states: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.summary_dim = summary_dim
        self.num_layers = num_layers
        self.num_states = num_states
        self.projected = num_states if all_states else 1
        self.proj = nn.Linear(summary_dim, self.projected * num_layers * hidden_dim, bias=bias)
        nn.init.xavier_uniform_(self.proj.weight)
        if bias:
            nn.init.zeros_(self.proj.bias)

    def forward(self, summary: Any) -> tuple[CellState, ...]:
        started = torch.tanh(self.proj(top_of(summary)[:, -self.summary_dim :])).chunk(self.num_layers, -1)
        layers = [layer.chunk(self.projected, -1) for layer in started]
        rest = self.num_states - self.projected
        return tuple((*states, *(torch.zeros_like(states[0]) for _ in range(rest))) for states in layers)


class LearnedStart(nn.Module):
    """Starts each layer from learned states, for decoders that start before reading the source."""

    def __init__(self, *, hidden_dim: int, num_layers: int = 1, num_states: int = 1) -> None:
        super().__init__()
        self.states = nn.Parameter(torch.zeros(num_layers, num_states, hidden_dim))

    def forward(self, summary: Any) -> tuple[CellState, ...]:
        batch = top_of(summary).shape[0]
        return tuple(tuple(state.expand(batch, -1) for state in layer) for layer in self.states)
