"""A decoder that gets one summary vector of the source at every step."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.decoders.base import Decoded, Decoder, Step
from saccade.decoders.heads import LinearHead, LowRankHead
from saccade.encoders import EncoderOutput
from saccade.encoders.base import top_of
from saccade.layers import GRUCell, Maxout, TokenEmbedding
from saccade.layers.cell import glorot_by_gate
from saccade.layers.gru import gru_sequence, gru_step


class _Source(NamedTuple):
    """The projections of the source that every step uses."""

    context: Tensor
    gates: Tensor
    inner: Tensor


class ChoState(NamedTuple):
    """The state of a `ChoDecoder`."""

    memory: _Source
    hidden: Tensor


class ChoDecoder(Decoder):
    r"""A gated recurrent unit that gets the source summary c at every step, with a maxout readout.

    .. math:: c = \tanh(V h_S), \quad g_0 = \tanh(V' c), \quad
        n = \tanh(W e_{t-1} + r \odot (U g_{t-1} + C c)), \quad g_t = z \odot g_{t-1} + (1 - z) \odot n

    .. math:: s = \operatorname{maxout}(O_h g_t + O_y e_{t-1} + O_c c), \quad p = \operatorname{softmax}(G s)

    Shapes:
        summary (batch, summary_dim), tokens (batch, steps) -> features (batch, steps, maxout_dim).

    Reference:
        Cho et al. (2014), arXiv:1406.1078, appendix A.1.2.

    Args:
        embedding: tokens -> (batch, steps, embedding_dim).
        output_rank: factorises G into two smaller matrices.
    """

    def __init__(
        self,
        *,
        embedding: TokenEmbedding,
        hidden_dim: int,
        summary_dim: int,
        maxout_dim: int,
        output_rank: int | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.vocab_size = embedding.vocab_size
        self.embedding = embedding
        self.dropout = dropout
        self.context_proj = nn.Linear(summary_dim, hidden_dim)
        self.initial_proj = nn.Linear(hidden_dim, hidden_dim)
        self.input_proj = nn.Linear(embedding.dim, 3 * hidden_dim)
        self.context_gates = nn.Linear(hidden_dim, 3 * hidden_dim, bias=False)
        self.cell = GRUCell(hidden_dim=hidden_dim, reset="after")
        self.readout = Maxout(input_dim=2 * hidden_dim + embedding.dim, output_dim=maxout_dim)
        if output_rank is None:
            self.head = LinearHead(input_dim=maxout_dim, vocab_size=self.vocab_size)
        else:
            self.head = LowRankHead(input_dim=maxout_dim, vocab_size=self.vocab_size, rank=output_rank)
        for linear in (self.input_proj, self.context_gates):
            glorot_by_gate(linear, hidden_dim)

    def begin(self, encoded: EncoderOutput) -> ChoState:
        context = torch.tanh(self.context_proj(top_of(encoded.summary)))
        size = self.cell.hidden_dim
        gates, inner = self.context_gates(context).split([2 * size, size], dim=-1)
        assert self.cell.bias is not None
        source = _Source(context, F.pad(gates, (0, size)), inner + self.cell.bias)
        return ChoState(source, torch.tanh(self.initial_proj(context)))

    def step(self, tokens: Tensor, state: ChoState) -> Step:
        embedded = self.embedding(tokens)
        source = state.memory
        projected = self.input_proj(embedded) + source.gates
        hidden = gru_step(projected, state.hidden, self.cell.weight, source.inner)
        features = self.readout(torch.cat([hidden, embedded, source.context], dim=-1))
        return Step((self.head, features), state._replace(hidden=hidden))

    def forward(self, encoded: EncoderOutput, tokens: Tensor) -> Decoded:
        source, hidden = self.begin(encoded)
        embedded = self.embedding(tokens)
        projected = self.input_proj(embedded) + source.gates.unsqueeze(1)
        states = gru_sequence(projected.transpose(0, 1), hidden, self.cell.weight, source.inner).transpose(0, 1)
        context = source.context.unsqueeze(1).expand(-1, tokens.shape[1], -1)
        features = self.readout(torch.cat([states, embedded, context], dim=-1))
        return Decoded(F.dropout(features, self.dropout, self.training))
