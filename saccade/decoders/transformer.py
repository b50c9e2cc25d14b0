"""The Transformer decoder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from torch import Tensor, nn

from saccade.decoders import fused
from saccade.decoders.base import Decoded, Decoder, Step, index_state
from saccade.decoders.fused import FusedState
from saccade.decoders.heads import Cues, LinearHead, OutputHead, make_head
from saccade.encoders import EncoderOutput, SourceWords
from saccade.kernels.linear import PackedLayers
from saccade.layers import TokenEmbedding, TransformerDecoderLayer
from saccade.layers.limits import fewest, most_keys, most_positions
from saccade.layers.transformer import empty_cache
from saccade.memory import Memory
from saccade.reading import Reading


class SourceRead(NamedTuple):
    """What a head that reads the source needs from it.

    Args:
        states: (batch, keys, key_dim), those of the encoder.
        words: the words of the source.
    """

    states: Tensor
    words: SourceWords

    @classmethod
    def of(cls, encoded: EncoderOutput) -> SourceRead | None:
        """None if no head reads the words of the source."""
        return None if encoded.words is None else cls(encoded.states, encoded.words)


class TransformerState(NamedTuple):
    """The state of a `TransformerDecoder`: for each layer the source, the past, and the states of its attentions.

    `rows` is the row of the past that each hypothesis continues, if not its own; the past is reordered as it grows.
    `source` is for a head that reads the source.
    """

    memory: tuple[Memory, ...]
    rows: Tensor | None
    cache: tuple[Memory, ...]
    attention: tuple[Any, ...]
    source: SourceRead | None = None


class TransformerDecoder(Decoder):
    """Transformer layers over the tokens so far; with `tied`, the embeddings are also the output weights.

    The weights it reports are the mean over the heads of the last layer's attention to the source. A head that copies
    sees the same weights, and what that attention read as its context; its state is the features.

    Shapes:
        states (batch, length, key_dim), tokens (batch, steps) -> features (batch, steps, dim).

    Reference:
        Vaswani et al. (2017), arXiv:1706.03762, section 3.1.

    Args:
        embedding: tokens -> (batch, steps, dim).
        layers: the layers, in order; the first reads the embeddings.
        final_norm: normalises the features, as needed with pre-norm layers.
        tied: whether the embeddings are also the output weights.
        head: from the features to words: a registered name or an `OutputHead`.
        source_vocab: the number of source tokens, for a head that needs it.
    """

    def __init__(
        self,
        *,
        embedding: TokenEmbedding,
        layers: Sequence[TransformerDecoderLayer],
        dim: int,
        final_norm: bool = True,
        tied: bool = True,
        head: str | OutputHead | partial[OutputHead] = "linear",
        source_vocab: int | None = None,
    ) -> None:
        super().__init__()
        if not layers:
            raise ValueError("TransformerDecoder needs at least one layer, got none.")
        vocab_size = self.vocab_size = embedding.vocab_size
        self.embedding = embedding
        self.layers = nn.ModuleList(layers)
        self.final_norm = nn.LayerNorm(dim) if final_norm else nn.Identity()
        self.head = make_head(
            head,
            input_dim=dim,
            vocab_size=vocab_size,
            source_vocab=source_vocab,
            state_dim=dim,
            context_dim=dim,
            embedding_dim=dim,
            bias=False,
            tied_to=embedding.weight if tied else None,
        )
        if isinstance(self.head, LinearHead) and not tied:
            nn.init.xavier_uniform_(self.head.proj.weight)
        self.packed = PackedLayers()

    def _layers(self) -> list[TransformerDecoderLayer]:
        return [layer for layer in self.layers if isinstance(layer, TransformerDecoderLayer)]

    def _memories(self, encoded: EncoderOutput) -> tuple[Memory, ...]:
        mask = encoded.mask.unsqueeze(1)
        return tuple(layer.cross_attention.prepare(encoded.states, mask=mask) for layer in self._layers())

    def shares_memory(self) -> bool:
        shared = all(layer.cross_attention.attention.independent_queries for layer in self._layers())
        return shared and not self.head.cued

    def max_keys(self) -> int | None:
        return fewest(most_keys(layer.cross_attention) for layer in self._layers())

    def max_steps(self) -> int | None:
        own = (most_keys(layer.self_attention) for layer in self._layers())  # its own past is what it attends to there
        return fewest([most_positions(self), *own])

    def begin(self, encoded: EncoderOutput) -> TransformerState | FusedState:
        memories = self._memories(encoded)
        if not self.head.cued:  # the kernel does not give the context
            state = fused.begin(self._layers(), self.final_norm, memories, encoded.mask, self.packed)
            if state is not None:
                return state
        caches = tuple(empty_cache(layer.self_attention, encoded.states) for layer in self._layers())
        return TransformerState(memories, None, caches, ((None, None),) * len(caches), SourceRead.of(encoded))

    def step(self, tokens: Tensor, state: TransformerState | FusedState) -> Step:
        if isinstance(state, FusedState):
            return self._fused_step(tokens, state) or self.step(tokens, self._plain(state))
        embedded = outputs = self.embedding(self.head.known(tokens).unsqueeze(1), start=state.cache[0].num_keys)
        caches, attentions = [], []
        parts = zip(self._layers(), state.memory, state.cache, state.attention, strict=True)
        for layer, memory, cache, attention in parts:
            outputs, reading, cache, attention = layer.step(outputs, memory, cache, attention, rows=state.rows)
            caches.append(cache)
            attentions.append(attention)
        said = self._said(self.final_norm(outputs), embedded, reading, state.source)[:, 0]
        state = TransformerState(state.memory, None, tuple(caches), tuple(attentions), state.source)
        return Step((self.head, said), state, lambda: reading.weights.mean(1).flatten(0, 1))

    def _said(self, features: Tensor, embedded: Tensor, reading: Reading, source: SourceRead | None) -> Any:
        """The head's input for steps (batch, steps, ...)."""
        if source is None:
            return features
        weights = reading.weights.mean(1)
        cues = Cues(features, embedded, reading.context, weights, source.states, source.words)
        return self.head.collect(features, cues)

    def _fused_step(self, tokens: Tensor, state: FusedState) -> Step | None:
        """The same with one kernel; None if that no longer applies, or if the plain step has to report an error."""
        if not fused.applies(self._layers()):
            return None
        inputs = self.embedding(tokens.unsqueeze(1), start=len(state.past.steps)).squeeze(1)
        found = fused.step(inputs, state)
        if found is None:
            return None
        computed, after = found
        return Step((self.head, computed.features), after, computed.weights)

    def _plain(self, state: FusedState) -> TransformerState:
        memories, caches = fused.plain(self._layers(), state)
        return TransformerState(memories, None, caches, ((None, None),) * len(caches))

    def select(self, state: TransformerState | FusedState, rows: Tensor) -> Any:
        if isinstance(state, FusedState):
            return state.index(rows)
        return super().select(state, rows)._replace(source=index_state(state.source, rows))

    def reorder(self, state: TransformerState | FusedState, rows: Tensor) -> TransformerState | FusedState:
        if isinstance(state, FusedState):
            return state.index(rows)
        order = rows if state.rows is None else state.rows.index_select(0, rows)
        return state._replace(rows=order, attention=index_state(state.attention, rows))

    def forward(self, encoded: EncoderOutput, tokens: Tensor) -> Decoded:
        embedded = outputs = self.embedding(self.head.known(tokens))
        for layer, memory in zip(self._layers(), self._memories(encoded), strict=True):
            outputs, reading = layer(outputs, memory)
        said = self._said(self.final_norm(outputs), embedded, reading, SourceRead.of(encoded))
        return Decoded(said, lambda: reading.weights.mean(1))
