"""A recurrent decoder that attends to the source before each step."""

from __future__ import annotations

from functools import partial
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.attention import Attention
from saccade.decoders.attentive import AttentiveDecoder
from saccade.decoders.base import Decoded, Step, by_memory
from saccade.decoders.bridge import ProjectSummary
from saccade.decoders.heads import Cues, OutputHead, make_head
from saccade.encoders import EncoderOutput, SourceWords
from saccade.layers import GRUCell, Maxout, TokenEmbedding
from saccade.layers.cell import glorot_by_gate
from saccade.memory import Memory
from saccade.reading import Reading, State


class RNNSearchState(NamedTuple):
    """The state of an `RNNSearchDecoder`.

    `projected` says whether the memory's values are the encoder's states already multiplied by the weights of the cell
    and of the readout, so that a context needs no further projection. `words` are the words of the source, for a head
    that reads them.
    """

    memory: Memory
    hidden: Tensor
    attention: State
    projected: bool
    words: SourceWords | None = None


class RNNSearchDecoder(AttentiveDecoder):
    r"""A gated recurrent unit that attends to the source before each step, with a maxout readout.

    .. math:: c_i = \mathrm{attention}(s_{i-1}, h), \quad s_i = \mathrm{GRU}([e_{i-1}; c_i], s_{i-1}), \quad
        p = \operatorname{softmax}(W_o \operatorname{maxout}(U_o s + V_o e_{i-1} + C_o c_i))

    In the readout s is s_{i-1}, as in the paper's appendix (`readout_state="previous"`), or s_i, as in most
    implementations ("current"). The cell's update gate z is 1 minus the paper's.

    Shapes:
        states (batch, length, context_dim), tokens (batch, steps) -> features (batch, steps, maxout_dim).

    Reference:
        Bahdanau et al. (2015), arXiv:1409.0473, appendix A.2.2.

    Args:
        embedding: tokens -> (batch, steps, embedding_dim).
        attention: queries are s (hidden_dim), followed by e with `query="state_and_token"`; keys and values are the
            encoder's states (context_dim).
        summary_dim: how many of the last features of the summary s_0 is computed from.
        query: s_{i-1} as in the paper ("state"), or s_{i-1} and e_{i-1} ("state_and_token"), since s_{i-1} has not seen
            that token.
        cell: "paper" resets before the recurrent product, "fast" after it, which saves one product per step.
        bridge: maps the encoder's summary to s_0; by default `ProjectSummary`, as in the paper.
        head: from the readout to words: a registered name or an `OutputHead`.
        source_vocab: the number of source tokens, for a head that needs it.
    """

    def __init__(
        self,
        *,
        embedding: TokenEmbedding,
        attention: Attention,
        hidden_dim: int,
        context_dim: int,
        summary_dim: int,
        maxout_dim: int,
        query: Literal["state", "state_and_token"] = "state",
        cell: Literal["paper", "fast"] = "paper",
        readout_state: Literal["previous", "current"] = "previous",
        bridge: nn.Module | None = None,
        head: str | OutputHead | partial[OutputHead] = "linear",
        source_vocab: int | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(embedding=embedding, attention=attention, dropout=dropout)
        if query not in ("state", "state_and_token"):
            raise ValueError(f"query must be 'state' or 'state_and_token', got {query!r}.")
        if cell not in ("paper", "fast"):
            raise ValueError(f"cell must be 'paper' or 'fast', got {cell!r}.")
        if readout_state not in ("previous", "current"):
            raise ValueError(f"readout_state must be 'previous' or 'current', got {readout_state!r}.")
        self.bridge = bridge or ProjectSummary(summary_dim=summary_dim, hidden_dim=hidden_dim)
        self.input_proj = nn.Linear(embedding.dim, 3 * hidden_dim)
        self.context_proj = nn.Linear(context_dim, 3 * hidden_dim, bias=False)
        self.cell = GRUCell(hidden_dim=hidden_dim, reset="before" if cell == "paper" else "after")
        self.readout = Maxout(input_dim=hidden_dim + embedding.dim + context_dim, output_dim=maxout_dim)
        self.head = make_head(
            head,
            input_dim=maxout_dim,
            vocab_size=self.vocab_size,
            source_vocab=source_vocab,
            state_dim=hidden_dim,
            context_dim=context_dim,
            embedding_dim=embedding.dim,
        )
        self.query = query
        self.readout_state = readout_state
        for linear in (self.input_proj, self.context_proj):
            glorot_by_gate(linear, hidden_dim)

    def shares_memory(self) -> bool:
        return self.attention.independent_queries and not self.head.cued

    def begin(self, encoded: EncoderOutput) -> RNNSearchState:
        # Contexts are always projected. If the context is a weighted sum of states, a search projects the states once
        # instead of projecting a context at each step of each hypothesis.
        return self._begin(encoded, projected=self.attention.aggregation.weighted_sum and not self.head.cued)

    def step(self, tokens: Tensor, state: RNNSearchState) -> Step:
        embedded = self.embedding(self.head.known(tokens))
        reading, context, hidden = self._advance(embedded, self.input_proj(embedded), state)
        asked = state.hidden if self.readout_state == "previous" else hidden
        if state.projected:
            weight, _ = self._readout_weights()
            units = F.linear(torch.cat([asked, embedded], dim=-1), weight, self.readout.proj.bias)
            features = self.readout.largest(units + context[..., self.context_proj.out_features :])
        else:
            features = self.readout(torch.cat([asked, embedded, context], dim=-1))
        said = features
        if state.words is not None:
            after, inputs, read = (each.unsqueeze(1) for each in (hidden, embedded, context))
            cues = Cues(after, inputs, read, reading.weights, state.memory.values, state.words)
            said = self.head.collect(features.unsqueeze(1), cues)[:, 0]
        state = state._replace(hidden=hidden, attention=reading.state)
        return Step((self.head, said), state, lambda: reading.weights.flatten(0, 1))

    def forward(self, encoded: EncoderOutput, tokens: Tensor) -> Decoded:
        state = self._begin(encoded, projected=False)
        embedded = self.embedding(self.head.known(tokens))
        hidden, readings, contexts = [state.hidden], [], []
        for token, projected in zip(embedded.unbind(1), self.input_proj(embedded).unbind(1), strict=True):
            reading, context, after = self._advance(token, projected, state)
            state = state._replace(hidden=after, attention=reading.state)
            hidden.append(after)
            readings.append(reading)
            contexts.append(context)
        if not readings:
            return Decoded(embedded.new_zeros(len(tokens), 0, self.readout.output_dim), _no_weights(encoded))
        asked = torch.stack(hidden[:-1] if self.readout_state == "previous" else hidden[1:], dim=1)
        read = torch.stack(contexts, dim=1)
        features = F.dropout(self.readout(torch.cat([asked, embedded, read], dim=-1)), self.dropout, self.training)
        if state.words is not None:
            after, weights = torch.stack(hidden[1:], dim=1), torch.cat([each.weights for each in readings], dim=1)
            features = self.head.collect(
                features, Cues(after, embedded, read, weights, state.memory.values, state.words)
            )
        return Decoded.of_steps(features, readings)

    def _begin(self, encoded: EncoderOutput, *, projected: bool) -> RNNSearchState:
        values = self._project(encoded.states) if projected else None
        memory = self.attention.prepare(encoded.states, values, mask=encoded.mask.unsqueeze(1))
        return RNNSearchState(memory, self.bridge(encoded.summary)[0][0], State(), projected, encoded.words)

    def _advance(self, token: Tensor, projected: Tensor, state: RNNSearchState) -> tuple[Reading, Tensor, Tensor]:
        query = state.hidden if self.query == "state" else torch.cat([state.hidden, token], dim=-1)
        reading = self.attention.read(by_memory(query, state.memory), state.memory, state=state.attention)
        context = reading.context.flatten(0, 1)
        gates = context[..., : self.context_proj.out_features] if state.projected else self.context_proj(context)
        hidden = self.cell.step(projected + gates, (state.hidden,))[0]
        return reading, context, hidden

    def _project(self, context: Tensor) -> Tensor:
        """The projections of a context for the cell and the readout, concatenated."""
        _, weight = self._readout_weights()
        return torch.cat([self.context_proj(context), F.linear(context, weight)], dim=-1)

    def _readout_weights(self) -> tuple[Tensor, Tensor]:
        """The weights for state and token, and those for the context."""
        weight, size = self.readout.proj.weight, self.context_proj.in_features
        return weight[:, :-size], weight[:, -size:]


def _no_weights(encoded: EncoderOutput) -> Tensor:
    return encoded.states.new_zeros(len(encoded.mask), 0, encoded.mask.shape[1])
