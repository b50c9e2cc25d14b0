"""A recurrent decoder that looks at a picture before each word."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.attention import Attention
from saccade.decoders.attentive import AttentiveDecoder
from saccade.decoders.base import Decoded, Step, by_memory
from saccade.decoders.bridge import ProjectSummary
from saccade.decoders.heads import LinearHead
from saccade.encoders import EncoderOutput
from saccade.layers import LSTMCell, TokenEmbedding
from saccade.layers.cell import CellState, glorot_by_gate
from saccade.memory import Memory
from saccade.reading import Reading, State


class ShowAttendTellState(NamedTuple):
    """The state of a `ShowAttendTellDecoder`."""

    memory: Memory
    hidden: CellState
    attention: State


class ShowAttendTellDecoder(AttentiveDecoder):
    r"""A long short-term memory that attends to the annotations before each step.

    .. math:: h_0, c_0 = \tanh(W \bar a), \quad z_t = \mathrm{attention}(h_{t-1}, a), \quad
        h_t, c_t = \mathrm{LSTM}([E y_{t-1}; z_t], h_{t-1}, c_{t-1})

    .. math:: p = \operatorname{softmax}(L_o \tanh(E y_{t-1} + L_h h_t + L_z z_t))

    Shapes:
        states (batch, places, context_dim), tokens (batch, steps) -> features (batch, steps, embedding_dim).

    Reference:
        Xu et al. (2015), arXiv:1502.03044, sections 3.1.2 and 4; the tanh is that of the authors' code.

    Args:
        embedding: tokens -> (batch, steps, embedding_dim).
        attention: queries are h (hidden_dim); keys and values are the annotations (context_dim).
        summary_dim: features of the mean annotation.
        dropout: applied to the start, to h in the readout, and to the readout.
    """

    def __init__(
        self,
        *,
        embedding: TokenEmbedding,
        attention: Attention,
        hidden_dim: int,
        context_dim: int,
        summary_dim: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(embedding=embedding, attention=attention, dropout=dropout)
        read = attention.aggregation.output_dim(context_dim)
        self.bridge = ProjectSummary(summary_dim=summary_dim, hidden_dim=hidden_dim, num_states=2, all_states=True)
        self.input_proj = nn.Linear(embedding.dim, 4 * hidden_dim)
        self.context_proj = nn.Linear(read, 4 * hidden_dim, bias=False)
        self.cell = LSTMCell(hidden_dim=hidden_dim)
        self.state_readout = nn.Linear(hidden_dim, embedding.dim)
        self.context_readout = nn.Linear(read, embedding.dim, bias=False)
        self.head = LinearHead(input_dim=embedding.dim, vocab_size=self.vocab_size)
        for linear in (self.input_proj, self.context_proj):
            glorot_by_gate(linear, hidden_dim)

    def shares_memory(self) -> bool:
        return self.attention.independent_queries

    def begin(self, encoded: EncoderOutput) -> ShowAttendTellState:
        return ShowAttendTellState(self.prepare(encoded), self.bridge(encoded.summary)[0], State())

    def step(self, tokens: Tensor, state: ShowAttendTellState) -> Step:
        embedded = self.embedding(tokens)
        reading, context, hidden = self._advance(self.input_proj(embedded), state)
        features = self._readout(embedded, hidden[0], context)
        state = state._replace(hidden=hidden, attention=reading.state)
        return Step((self.head, features), state, lambda: reading.weights.flatten(0, 1))

    def forward(self, encoded: EncoderOutput, tokens: Tensor) -> Decoded:
        state = self.begin(encoded)
        embedded = self.embedding(tokens)
        outputs, contexts, readings = [], [], []
        for projected in self.input_proj(embedded).unbind(1):
            reading, context, hidden = self._advance(projected, state)
            state = state._replace(hidden=hidden, attention=reading.state)
            outputs.append(hidden[0])
            contexts.append(context)
            readings.append(reading)
        if not readings:
            nothing = embedded.new_zeros(len(tokens), 0, encoded.mask.shape[1])
            return Decoded(embedded.new_zeros(embedded.shape), nothing)
        features = self._readout(embedded, torch.stack(outputs, dim=1), torch.stack(contexts, dim=1))
        return Decoded.of_steps(F.dropout(features, self.dropout, self.training), readings)

    def _advance(self, projected: Tensor, state: ShowAttendTellState) -> tuple[Reading, Tensor, CellState]:
        reading = self.attention.read(by_memory(state.hidden[0], state.memory), state.memory, state=state.attention)
        context = reading.context.flatten(0, 1)
        return reading, context, self.cell.step(projected + self.context_proj(context), state.hidden)

    def _readout(self, embedded: Tensor, hidden: Tensor, context: Tensor) -> Tensor:
        kept = F.dropout(hidden, self.dropout, self.training)
        return torch.tanh(embedded + self.state_readout(kept) + self.context_readout(context))
