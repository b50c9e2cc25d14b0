"""A recurrent decoder that attends to the source after each step."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.attention import Attention, check_one_by_one
from saccade.decoders.base import Decoded, Decoder, Step
from saccade.decoders.heads import Cues, OutputHead, make_head
from saccade.decoders.source_attentions import SourceAttentions, SourceReading
from saccade.encoders import EncodedSources, EncoderOutput, JoinedSources, SourceWords
from saccade.layers import RecurrentStack, TokenEmbedding
from saccade.layers.cell import CellState, glorot_by_gate
from saccade.reading import Reading, State

FIRST_WORD = 3
"""The ids before it are padding, start and end, which nothing follows."""


class LuongState(NamedTuple):
    """The state of a `LuongDecoder`; `fed` is the attentional vector or the context, None without input feeding; `real`
    is the mask of the source positions, of which the memory may hold fewer, None if weights have all of them anyway;
    `words` are the words of the source, for a head that reads them."""

    memory: Any
    hidden: tuple[CellState, ...]
    fed: Tensor | None
    attention: Any
    real: Tensor | None
    words: SourceWords | None = None


class LuongDecoder(Decoder):
    r"""A recurrent decoder whose top state attends to the source and predicts the next token from both.

    .. math:: c_t = \mathrm{attention}(h_t, \bar h), \quad \tilde h_t = \tanh(W_c [c_t; h_t]), \quad
        p = \operatorname{softmax}(W_s \tilde h_t)

    With input feeding the input of the next step is [e_t; \tilde h_t], so steps are computed one by one; without it,
    all steps are computed at once. The speller of LAS feeds the context instead, [e_t; c_t].

    Shapes:
        states (batch, length, context_dim), tokens (batch, steps) -> features (batch, steps, hidden_dim).

    Reference:
        Luong et al. (2015), arXiv:1508.04025, section 3; Chan et al. (2015), arXiv:1508.01211, sections 3.2 and 3.3:
        there h_t is s_i, and the readout is a network with one hidden layer.

    Args:
        embedding: tokens -> (batch, steps, input_dim of the stack).
        attention: queries are h (hidden_dim of the stack); keys and values are the encoder's states (context_dim). For
            several sources, `SourceAttentions`.
        bridge: maps the encoder's summary to the initial states: `CopyStates`, `ProjectSummary` or `LearnedStart`; for
            several sources a `Combination`.
        feeds: what the next step sees with input feeding: the attentional "vector" or the "context".
        sampling: how often training feeds a token that the model draws itself instead of the one before, so that it
            learns to continue after its own mistakes; only with input feeding.
        readout: "tanh" as above, or "linear", W_c [c_t; h_t] + b, as in the pointer-generator.
        head: from the attentional vector to words: a registered name or an `OutputHead`.
        source_vocab: the number of source tokens, for a head that needs it.
    """

    def __init__(
        self,
        *,
        embedding: TokenEmbedding,
        stack: RecurrentStack,
        attention: Attention | SourceAttentions,
        bridge: nn.Module,
        context_dim: int,
        input_feeding: bool = True,
        feeds: Literal["vector", "context"] = "vector",
        sampling: float = 0.0,
        readout: Literal["tanh", "linear"] = "tanh",
        head: str | OutputHead | partial[OutputHead] = "linear",
        source_vocab: int | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        for part in attention.modules():
            if isinstance(part, Attention):
                check_one_by_one(part)
        if feeds not in ("vector", "context"):
            raise ValueError(f"feeds must be 'vector' or 'context', got {feeds!r}.")
        if not 0.0 <= sampling < 1.0:
            raise ValueError(f"sampling must be from 0 to less than 1, got {sampling}.")
        if readout not in ("tanh", "linear"):
            raise ValueError(f"readout must be 'tanh' or 'linear', got {readout!r}.")
        if sampling and not input_feeding:
            raise ValueError("sampling draws tokens step by step: it needs input_feeding=True.")
        self.vocab_size = embedding.vocab_size
        self.embedding = embedding
        self.stack = stack
        self.attention = attention
        self.bridge = bridge
        self.dropout = dropout
        size = stack.hidden_dim
        self.combine_proj = nn.Linear(context_dim + size, size, bias=readout == "linear")
        nn.init.xavier_uniform_(self.combine_proj.weight)
        self.feed_proj: nn.Linear | None = None
        if input_feeding:
            self.feed_proj = nn.Linear(
                context_dim if feeds == "context" else size, stack.first.input_proj.out_features, bias=False
            )
            glorot_by_gate(self.feed_proj, size)
        self.head = make_head(
            head,
            input_dim=size,
            vocab_size=self.vocab_size,
            source_vocab=source_vocab,
            state_dim=size,
            context_dim=context_dim,
            embedding_dim=stack.first.input_proj.in_features,
        )
        if self.head.cued and (isinstance(attention, SourceAttentions) or sampling):
            raise ValueError("A head that reads the source works with one source, and without sampling.")
        self.readout = readout
        self.feeds = feeds
        self.sampling = sampling

    def begin(self, encoded: EncoderOutput | JoinedSources | EncodedSources) -> LuongState:
        hidden = self.bridge(encoded.summary)
        top = hidden[-1][0]
        fed = None if self.feed_proj is None else top.new_zeros(top.shape[0], self.feed_proj.in_features)
        if isinstance(self.attention, SourceAttentions):
            assert isinstance(encoded, EncodedSources)
            return LuongState(self.attention.remember(encoded), hidden, fed, self.attention.begin(), None)
        assert not isinstance(encoded, EncodedSources)
        states, mask = encoded.states, encoded.mask
        most = self.attention.score.max_keys
        if most is not None:  # the paper ignores positions beyond the last one that "location" scores
            states, mask = states[:, :most], mask[:, :most]
        memory = self.attention.prepare(states, mask=mask.unsqueeze(1))
        return LuongState(memory, hidden, fed, State(), encoded.mask, getattr(encoded, "words", None))

    def step(self, tokens: Tensor, state: LuongState) -> Step:
        embedded = self.embedding(self.head.known(tokens))
        features, reading, state = self._advance(self.stack.first.input_proj(embedded), state)
        said, real = features, state.real
        if state.words is not None:
            top = state.hidden[-1][0]
            said = self._said(features[:, None], top[:, None], embedded[:, None], [reading], state)[:, 0]
        if real is None:
            return Step((self.head, said), state, lambda: reading.weights.squeeze(1))
        return Step((self.head, said), state, lambda: _widen(reading.weights.squeeze(1), real.shape[1]))

    def forward(self, encoded: EncoderOutput | JoinedSources | EncodedSources, tokens: Tensor) -> Decoded:
        state = self.begin(encoded)
        embedded = self.embedding(self.head.known(tokens))
        keys = encoded.mask.shape[1]
        if self.feed_proj is None:
            hidden = self.stack(embedded, state.hidden)
            reading = self.attention.read(hidden, state.memory, state=state.attention)
            features = self._combine(reading, hidden)
            if state.words is not None:
                features = self._said(features, hidden, embedded, [reading], state)
            return Decoded(features, lambda: _widen(reading.weights, keys))
        steps: list[Tensor] = []
        tops: list[Tensor] = []
        readings: list[Reading | SourceReading] = []
        for number, projected in enumerate(self.stack.first.input_proj(embedded).unbind(1)):
            if steps and self.training and self.sampling:
                projected = self._sampled(projected, tokens[:, number], steps[-1])
            features, reading, state = self._advance(projected, state)
            steps.append(features)
            tops.append(state.hidden[-1][0])
            readings.append(reading)
        if not steps:
            nothing = embedded.new_zeros(len(tokens), 0, self.stack.hidden_dim)
            return Decoded(nothing, embedded.new_zeros(len(tokens), 0, keys))
        said: Any = torch.stack(steps, dim=1)
        if state.words is not None:
            said = self._said(said, torch.stack(tops, dim=1), embedded, readings, state)
        return Decoded(said, lambda: _widen(torch.cat([reading.weights for reading in readings], dim=1), keys))

    def _advance(self, projected: Tensor, state: LuongState) -> tuple[Tensor, Reading | SourceReading, LuongState]:
        if self.feed_proj is not None:
            assert state.fed is not None
            projected = projected + self.feed_proj(state.fed)
        hidden, states = self.stack.step(projected, state.hidden)
        reading = self.attention.read(hidden.unsqueeze(1), state.memory, state=state.attention)
        features = self._combine(reading, hidden.unsqueeze(1)).squeeze(1)
        fed = None
        if self.feed_proj is not None:
            fed = features if self.feeds == "vector" else reading.context.squeeze(1)
        return features, reading, state._replace(hidden=states, fed=fed, attention=reading.state)

    def _sampled(self, projected: Tensor, tokens: Tensor, features: Tensor) -> Tensor:
        """The projected inputs, some of which are tokens drawn from what the last step predicts."""
        rows = (torch.rand(len(tokens), device=tokens.device) < self.sampling).nonzero().squeeze(1)
        if not len(rows):
            return projected
        with torch.no_grad():
            logits = self.head.logits(features[rows]).float()
            logits[:, :FIRST_WORD] = -torch.inf
            drawn = torch.multinomial(logits.softmax(-1), 1).squeeze(1)
        inputs: Tensor = self.stack.first.input_proj(self.embedding(drawn))
        return projected.index_copy(0, rows, inputs)

    def _said(
        self,
        features: Tensor,
        hidden: Tensor,
        embedded: Tensor,
        readings: Sequence[Reading | SourceReading],
        state: LuongState,
    ) -> Any:
        """The head's input for steps (batch, steps, ...) that read the source."""
        assert state.words is not None
        width = state.words.mask.shape[1]
        weights = _widen(torch.cat([reading.weights for reading in readings], dim=1), width)
        context = torch.cat([reading.context for reading in readings], dim=1)
        values = state.memory.values
        keys = F.pad(values, (0, 0, 0, width - values.shape[1]))
        return self.head.collect(features, Cues(hidden, embedded, context, weights, keys, state.words))

    def _combine(self, reading: Reading | SourceReading, hidden: Tensor) -> Tensor:
        features = self.combine_proj(torch.cat([reading.context, hidden], dim=-1))
        features = torch.tanh(features) if self.readout == "tanh" else features
        return F.dropout(features, self.dropout, self.training)


def _widen(weights: Tensor, keys: int) -> Tensor:
    """Adds zeros for keys that were cut off."""
    return F.pad(weights, (0, keys - weights.shape[-1]))
