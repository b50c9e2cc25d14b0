"""A recurrent decoder that copies, and rereads what it copied."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.attention import Attention
from saccade.decoders.attentive import AttentiveDecoder
from saccade.decoders.base import Decoded, Step
from saccade.decoders.bridge import ProjectSummary
from saccade.decoders.heads import CopyScored, Entries, Said
from saccade.decoders.heads.copynet import CopyNetHead
from saccade.encoders import EncoderOutput, SourceWords
from saccade.layers import GRUCell, TokenEmbedding
from saccade.layers.cell import glorot_by_gate
from saccade.memory import Memory
from saccade.reading import Reading, State


class CopyNetMemory(NamedTuple):
    """The sentence's part of the state: its memory, its keys for copying (batch, keys, hidden_dim), and its words."""

    read: Memory
    copied: Tensor
    words: SourceWords


class CopyNetState(NamedTuple):
    """The state of a `CopyNetDecoder`; `scores` (batch, keys) are those of copying at the last step."""

    memory: CopyNetMemory
    hidden: Tensor
    scores: Tensor
    attention: State


class CopyNetDecoder(AttentiveDecoder):
    r"""A gated recurrent unit that attends to the source, copies from it, and rereads where it copied.

    .. math:: c_t = \mathrm{attention}(s_{t-1}, h), \quad
        s_t = \mathrm{GRU}([e(y_{t-1}); \zeta(y_{t-1}); c_t], s_{t-1})

    .. math:: \zeta(y) = \sum_j \rho_{tj} h_j, \quad
        \rho_{tj} = \frac{1}{K} p(x_j, \text{copy} \mid s_{t-1}) \text{ where } x_j = y, \text{ else } 0

    The selective read \zeta is zero where y_{t-1} is not in the source. Words are predicted by a `CopyNetHead` over
    s_t, or with `readout` over [s_t; c_t; e(y_{t-1})], as in the released code.

    Shapes:
        states (batch, length, context_dim), tokens (batch, steps) -> `Said` with features (batch, steps, hidden_dim).

    Reference:
        Gu et al. (2016), arXiv:1603.06393, section 3.

    Args:
        embedding: tokens -> (batch, steps, embedding_dim).
        attention: queries are s (hidden_dim); keys and values are the encoder's states (context_dim).
        summary_dim: how many of the last features of the summary s_0 is computed from.
        readout: whether the vocabulary's scores see c_t and e(y_{t-1}) beside the state.
    """

    head: CopyNetHead

    def __init__(
        self,
        *,
        embedding: TokenEmbedding,
        attention: Attention,
        hidden_dim: int,
        context_dim: int,
        summary_dim: int,
        selective_read: bool = True,
        readout: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(embedding=embedding, attention=attention, dropout=dropout)
        self.bridge = ProjectSummary(summary_dim=summary_dim, hidden_dim=hidden_dim)
        self.input_proj = nn.Linear(embedding.dim, 3 * hidden_dim)
        self.context_proj = nn.Linear(context_dim, 3 * hidden_dim, bias=False)
        self.selected_proj = nn.Linear(context_dim, 3 * hidden_dim, bias=False) if selective_read else None
        self.cell = GRUCell(hidden_dim=hidden_dim, reset="before")
        self.readout = nn.Linear(hidden_dim + context_dim + embedding.dim, hidden_dim) if readout else None
        self.head = CopyNetHead(
            input_dim=hidden_dim, vocab_size=self.vocab_size, state_dim=hidden_dim, context_dim=context_dim
        )
        for linear in (self.input_proj, self.context_proj, self.selected_proj):
            if linear is not None:
                glorot_by_gate(linear, hidden_dim)

    def begin(self, encoded: EncoderOutput) -> CopyNetState:
        if encoded.words is None or encoded.words.words is None:
            raise ValueError("CopyNet copies words of the source, but did not get them: set task.copying to yes.")
        memory = self.prepare(encoded)
        hidden = self.bridge(encoded.summary)[0][0]
        kept = CopyNetMemory(memory, self._copying.prepare(memory.values), encoded.words)
        nothing = hidden.new_full(encoded.mask.shape, -torch.inf)  # the start token was not copied
        return CopyNetState(kept, hidden, nothing, State())

    def step(self, tokens: Tensor, state: CopyNetState) -> Step:
        embedded = self.embedding(self.head.known(tokens))
        reading, state = self._advance(tokens, self.input_proj(embedded), state)
        said = self._said([state], embedded.unsqueeze(1), [reading])[:, 0]
        return Step((self.head, said), state, lambda: reading.weights.squeeze(1))

    def forward(self, encoded: EncoderOutput, tokens: Tensor) -> Decoded:
        state = self.begin(encoded)
        embedded = self.embedding(self.head.known(tokens))
        states, readings = [], []
        for token, projected in zip(tokens.unbind(1), self.input_proj(embedded).unbind(1), strict=True):
            reading, state = self._advance(token, projected, state)
            states.append(state)
            readings.append(reading)
        if not states:
            return Decoded(embedded.new_zeros(len(tokens), 0, state.hidden.shape[-1]))
        return Decoded.of_steps(self._said(states, embedded, readings), readings)

    @property
    def _copying(self) -> CopyScored:
        way = self.head.ways["copy"]
        assert isinstance(way, CopyScored)
        return way

    def _advance(self, tokens: Tensor, projected: Tensor, state: CopyNetState) -> tuple[Reading, CopyNetState]:
        memory = state.memory
        reading = self.attention.read(state.hidden.unsqueeze(1), memory.read, state=state.attention)
        gates = projected + self.context_proj(reading.context.squeeze(1))
        if self.selected_proj is not None:
            gates = gates + self.selected_proj(self._selected(tokens, state))
        hidden = self.cell.step(gates, (state.hidden,))[0]
        scores = self._copying.score(hidden.unsqueeze(1), memory.copied, memory.words.mask).squeeze(1)
        return reading, state._replace(hidden=hidden, scores=scores, attention=reading.state)

    def _selected(self, tokens: Tensor, state: CopyNetState) -> Tensor:
        """The selective read: what the source has where the last token may have been copied from."""
        words = state.memory.words.words
        assert words is not None
        same = (words == tokens.unsqueeze(1)) & (state.scores > -torch.inf)
        # The shared partition function of the last step cancels: a softmax over the positions of the word remains.
        any_same = same.any(-1, keepdim=True)
        scores = torch.where(same, state.scores, -torch.inf).masked_fill(~any_same, 0.0)
        shares = scores.softmax(-1).masked_fill(~same, 0.0)
        return (shares.unsqueeze(1) @ state.memory.read.values).squeeze(1)

    def _said(self, states: list[CopyNetState], embedded: Tensor, readings: list[Reading]) -> Said:
        """The head's input; the scores of copying are already known, since selective reads need them."""
        features = hidden = torch.stack([state.hidden for state in states], dim=1)
        if self.readout is not None:
            context = torch.cat([reading.context for reading in readings], dim=1)
            features = torch.tanh(self.readout(torch.cat([hidden, context, embedded], dim=-1)))
        scores = torch.stack([state.scores for state in states], dim=1)
        words = states[-1].memory.words.words
        assert words is not None
        entries = {"copy": Entries(scores, words.unsqueeze(1).expand(scores.shape))}
        return Said(F.dropout(features, self.dropout, self.training), entries, extra=scores.shape[-1])
