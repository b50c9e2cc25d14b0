"""A recurrent decoder in which each word comes from one source position."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from saccade.decoders.base import Decoded, Decoder, Step
from saccade.decoders.heads import MixtureHead
from saccade.decoders.sources import Sources, with_a_source
from saccade.decoders.transitions import Transitions, single
from saccade.distributions.alignment import AlignmentPosterior
from saccade.encoders import EncoderOutput
from saccade.encoders.base import top_of
from saccade.layers import RecurrentStack, TokenEmbedding
from saccade.layers.cell import CellState
from saccade.structures import FORBIDDEN

BLOCK = 2**23
"""Limit on the readout and logit elements in memory; beyond it, steps are computed in blocks."""


class AlignedState(NamedTuple):
    """The state of an `AlignedDecoder`.

    `expected` is log p(a_t | y_<t) of the last step and `total` the log-normaliser of its logits, both
    (batch, sources), None before the first step; `position` (batch,) is the current position in online decoding.
    """

    memory: Sources
    hidden: tuple[CellState, ...]
    expected: Tensor | None
    total: Tensor | None
    position: Tensor


class AlignedDecoder(Decoder):
    r"""A recurrent decoder in which every word comes from one source position, summing over all alignments.

    .. math:: p(y_t \mid y_{<t}) = \sum_s p(a_t = s \mid y_{<t})\, p(y_t \mid a_t = s), \qquad
        p(y_t \mid a_t = s) = \operatorname{softmax}(V \tanh(W h_t + U \bar h_s))

    p(a_t | y_<t) follows from p(a_{t-1} | y_<t) and the transitions, so the search carries it along in its state. The
    state h_t depends on the previous words, but not on where they came from. `alignment` is the distribution over
    alignments of a whole target: train its log-likelihood; its marginals are the posterior alignment.

    Every step also gets the encoder's summary, so that global information (such as the tags of an inflection) need not
    come from the aligned position. With `online` there is no summary: evaluation moves to the most likely next
    position, without reading past it, and emits a word from there.

    Shapes:
        states (batch, length, context_dim), tokens (batch, steps) -> features (batch, steps, sources, readout_dim + 1),
        the readout of each position and log p(a_t | y_<t).

    Reference:
        Wu and Cotterell (2019), arXiv:1905.06319; Yu et al. (2016), arXiv:1609.08194.

    Args:
        embedding: tokens -> (batch, steps, input_dim of the stack).
        transitions: p(a_t | a_{t-1}).
        bridge: computes the initial states; `LearnedStart` for online decoding.
        input_dim, context_dim: features of the stack's inputs, and of the encoder's states and summary.
    """

    head: MixtureHead

    def __init__(
        self,
        *,
        embedding: TokenEmbedding,
        stack: RecurrentStack,
        transitions: Transitions,
        bridge: nn.Module,
        input_dim: int,
        context_dim: int,
        readout_dim: int,
        online: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if online and not transitions.online:
            raise ValueError(
                f"{type(transitions).__name__} look at the whole source and cannot decode online: set online=False."
            )
        self.vocab_size = embedding.vocab_size
        self.embedding = embedding
        self.stack = stack
        self.transitions = transitions
        self.bridge = bridge
        self.summary_proj = None if online else nn.Linear(context_dim, input_dim, bias=False)
        self.query_proj = nn.Linear(stack.hidden_dim, readout_dim)
        self.key_proj = nn.Linear(context_dim, readout_dim, bias=False)
        self.head = MixtureHead(input_dim=readout_dim, vocab_size=self.vocab_size)
        self.online = online
        self.dropout = dropout

    def begin(self, encoded: EncoderOutput) -> AlignedState:
        position = torch.zeros(encoded.mask.shape[0], dtype=torch.long, device=encoded.mask.device)
        return AlignedState(self._sources(encoded), self.bridge(encoded.summary), None, None, position)

    def step(self, tokens: Tensor, state: AlignedState) -> Step:
        sources = state.memory
        arrived = self._arrived(tokens, state)
        told = _told(self.embedding(tokens), sources.summary)
        hidden, states = self.stack.step(self.stack.first.input_proj(told), state.hidden)
        query = hidden.unsqueeze(1)
        scores = self.transitions.scores(query, sources).squeeze(1)
        if state.expected is None:
            scores = self.transitions.first(scores)
        expected, position = self._expect(arrived, state.position, scores, sources.mask)
        raw = self.head.proj(self._readout(query, sources).squeeze(1))
        total = raw.logsumexp(-1)
        logits = self.head.mix(raw, expected - total)
        after = AlignedState(sources, states, expected, total, position)
        return Step(logits, after, lambda: _weights(expected, sources))

    def forward(self, encoded: EncoderOutput, tokens: Tensor) -> Decoded:
        state, query = self._states(encoded, tokens)
        sources = state.memory
        scores = self._scores(query, sources)
        words = self._words(query[:, :-1], sources, tokens[:, 1:])
        arrived, position = self._start(sources.mask), state.position
        steps: list[Tensor] = []
        for t in range(tokens.shape[1]):
            if t:
                arrived = (steps[-1] + words[:, t - 1]).log_softmax(-1)
            expected, position = self._expect(arrived, position, scores[:, t], sources.mask)
            steps.append(expected)
        expected = torch.stack(steps, dim=1) if steps else words.new_zeros(len(tokens), 0, sources.mask.shape[1])
        features = torch.cat([self._readout(query, sources), expected.unsqueeze(-1)], dim=-1)
        return Decoded(features, lambda: _weights(expected, sources))

    def alignment(
        self, encoded: EncoderOutput, tokens: Tensor, targets: Tensor, target_mask: Tensor
    ) -> AlignmentPosterior:
        """The distribution over alignments of targets (batch, steps); tokens are the targets shifted by one."""
        state, query = self._states(encoded, tokens)
        words = self._words(query, state.memory, targets)
        scores = self._scores(query, state.memory)
        return self.transitions.alignment(single(words), scores, state.memory.mask, target_mask)

    def _sources(self, encoded: EncoderOutput) -> Sources:
        states, mask = with_a_source(encoded)
        # Bounded: added at every step, it would otherwise drown out the words in the state.
        summary = None if self.summary_proj is None else torch.tanh(self.summary_proj(top_of(encoded.summary)))
        return Sources(self.key_proj(states), self.transitions.prepare(states, mask), mask, encoded.mask, summary)

    def _states(self, encoded: EncoderOutput, tokens: Tensor) -> tuple[AlignedState, Tensor]:
        """The state before the first step, and the recurrent states (batch, steps, hidden_dim) at all steps."""
        state = self.begin(encoded)
        summary = state.memory.summary
        told = _told(self.embedding(tokens), None if summary is None else summary.unsqueeze(1))
        query = self.stack(told, state.hidden)
        return state, F.dropout(query, self.dropout, self.training)

    def _scores(self, query: Tensor, sources: Sources) -> Tensor:
        """The scores of all steps."""
        scores = self.transitions.scores(query, sources)
        return torch.cat([self.transitions.first(scores[:, :1]), scores[:, 1:]], dim=1)

    def _readout(self, query: Tensor, sources: Sources) -> Tensor:
        return torch.tanh(self.query_proj(query).unsqueeze(2) + sources.keys.unsqueeze(1))

    def _start(self, mask: Tensor) -> Tensor:
        """Before the first word, all probability is on the first position."""
        first = torch.arange(mask.shape[1], device=mask.device) == 0
        dtype = torch.promote_types(self.head.proj.weight.dtype, torch.float32)
        return torch.where(first, 0.0, FORBIDDEN).to(dtype).expand(mask.shape)

    def _arrived(self, tokens: Tensor, state: AlignedState) -> Tensor:
        """log p(a_{t-1} | y_<t), which includes the last word."""
        if state.expected is None or state.total is None:
            return self._start(state.memory.mask)
        readout = self._readout(state.hidden[-1][0].unsqueeze(1), state.memory).squeeze(1)
        of_word = (readout @ self.head.proj.weight[tokens].unsqueeze(-1)).squeeze(-1)
        words = of_word + self.head.proj.bias[tokens].unsqueeze(-1) - state.total
        return (state.expected + words).log_softmax(-1)

    def _expect(self, arrived: Tensor, position: Tensor, scores: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """log p(a_t | y_<t), and the chosen position in online decoding."""
        if self.training or not self.online:
            return self.transitions.expect(arrived, scores, mask), position
        position = self.transitions.choose(position, scores, mask)
        chosen = torch.arange(mask.shape[1], device=mask.device) == position.unsqueeze(-1)
        return torch.where(chosen, 0.0, FORBIDDEN).to(arrived.dtype), position

    def _words(self, query: Tensor, sources: Sources, targets: Tensor) -> Tensor:
        """log p(y_t | a_t) (batch, steps, sources) of the targets, without keeping the vocabulary for all pairs."""
        numbers = sources.mask.numel() * (self.head.proj.in_features + self.vocab_size)
        at_once = max(1, BLOCK // max(1, numbers))
        if targets.shape[1] <= at_once:
            return self._words_of(query, sources, targets)
        parts = [
            checkpoint(self._words_of, some, sources, wanted, use_reentrant=False, preserve_rng_state=False)
            for some, wanted in zip(query.split(at_once, dim=1), targets.split(at_once, dim=1), strict=True)
        ]
        return torch.cat(parts, dim=1)

    def _words_of(self, query: Tensor, sources: Sources, targets: Tensor) -> Tensor:
        raw = self.head.proj(self._readout(query, sources))
        wanted = raw.gather(-1, targets[:, :, None, None].expand(*raw.shape[:-1], 1)).squeeze(-1)
        log_probs: Tensor = wanted - raw.logsumexp(-1)
        return log_probs


def _told(embedded: Tensor, summary: Tensor | None) -> Tensor:
    return embedded if summary is None else embedded + summary


def _weights(expected: Tensor, sources: Sources) -> Tensor:
    """p(a_t | y_<t) on the real positions."""
    real = sources.real if expected.dim() == 2 else sources.real.unsqueeze(1)
    return torch.where(real, expected[..., : sources.real.shape[1]].exp(), 0.0)
