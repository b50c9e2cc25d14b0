"""Pointer sentinel language models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from saccade.attention import Attention
from saccade.checks import check_count
from saccade.decoders import Step
from saccade.decoders.base import index_state
from saccade.decoders.heads import Entries, Said, Sentinel, WaysHead
from saccade.decoders.heads.blends import LOWEST
from saccade.distributions import Categorical, Distribution
from saccade.layers.cell import CellState
from saccade.models.base import models
from saccade.models.lstm_language_model import LSTMLanguageModel, word_head
from saccade.reading import Reading
from saccade.scores import DotScore
from saccade.selections import Softmax

POINT = "point"
"""The name of the second way to produce a word."""


class PointerState(NamedTuple):
    """The states of all layers, and the words that can be pointed at: (batch, words, dim) and (batch, words)."""

    cells: tuple[CellState, ...]
    states: Tensor
    words: Tensor


@models.register("pointer_sentinel")
class PointerSentinel(LSTMLanguageModel):
    r"""An LSTM language model that can also repeat one of the last words by pointing at it.

    .. math:: q_t = \tanh(W h_t + b), \quad a = \operatorname{softmax}([q_t^\top h_{t-L+1}, \dots, q_t^\top h_t,
        q_t^\top s]), \quad p(y) = a_s\, p_{vocab}(y) + \sum_{i : x_i = y} a_i

    The weight of the learned sentinel s is the share of the vocabulary; the rest is how far the pointer is trusted.
    At the beginning of a text there are fewer words to point at; the sentinel is always there.

    Shapes:
        tokens (batch, length), mask bool (batch, length), True = real, padding last -> `Said` over (batch, length),
        which `head` turns into log-probabilities (batch, length, vocab).

    Reference:
        Merity et al. (2016), arXiv:1609.07843, section 2.

    Args:
        dim, hidden_dim, num_layers, tied, dropout, word_dropout, weight_drop: as for `LSTMLanguageModel`.
        window: L, how many of the last words can be pointed at, those of earlier pieces of a text among them.
        auxiliary: the weight of :math:`-\log(a_s + \sum_{i : x_i = y} a_i)`, which training adds to the loss.
    """

    def __init__(
        self,
        *,
        vocab: int,
        causal: bool = True,
        dim: int = 200,
        hidden_dim: int | None = None,
        num_layers: int = 2,
        window: int = 100,
        auxiliary: float = 0.0,
        tied: bool = True,
        dropout: float = 0.2,
        word_dropout: float = 0.0,
        weight_drop: float = 0.0,
    ) -> None:
        super().__init__(
            vocab=vocab,
            causal=causal,
            dim=dim,
            hidden_dim=hidden_dim,
            num_layers=num_layers,
            tied=tied,
            dropout=dropout,
            word_dropout=word_dropout,
            weight_drop=weight_drop,
        )
        check_count("window", window)
        if not auxiliary >= 0.0:
            raise ValueError(f"auxiliary must be 0 or more, got {auxiliary}.")
        self.query_proj = nn.Linear(dim, dim)
        self.sentinel = Sentinel(cue_dim=dim)
        self.head = WaysHead(generate=word_head(self.embedding, tied), blend=self.sentinel, vocab_size=vocab)
        self.pointer = Attention(score=DotScore(), selection=Softmax())
        """Never called: it lets `record` see what was pointed at."""
        self.window, self.auxiliary = window, auxiliary

    def forward(self, tokens: Tensor, mask: Tensor) -> Said:  # type: ignore[override]
        return self.read(tokens, mask)[0]

    def read(  # type: ignore[override]
        self, tokens: Tensor, mask: Tensor, carried: Mapping[str, Tensor] | None = None
    ) -> tuple[Said, dict[str, Tensor]]:
        """As for `LSTMLanguageModel`, with the last `states` and their `words`."""
        states, after = super().read(tokens, mask, carried)
        known, words = states, tokens
        if carried:
            known = torch.cat([carried["states"].to(states.dtype), states], dim=1)
            words = torch.cat([carried["words"], tokens], dim=1)
        after |= {"states": known[:, -self.window :].detach(), "words": words[:, -self.window :]}
        key = torch.arange(words.shape[1], device=tokens.device)
        query = key[-tokens.shape[1] :, None]
        said = self._said(states, known, words.unsqueeze(1), (key <= query) & (key > query - self.window))
        self.pointer.note(Reading(states.detach(), deferred=_Pointed(self, said)))
        return said, after

    def _said(self, states: Tensor, known: Tensor, words: Tensor, seen: Tensor) -> Said:
        """The head's input for states (batch, length, dim), with known (batch, words, dim) to point at."""
        query = self.query_proj(states).tanh()
        scores = (query @ known.mT).masked_fill(~seen, -torch.inf)
        return Said(states, {POINT: Entries(scores, words.expand_as(scores))}, query)

    def states_of(self, features: Any) -> Tensor:
        states: Tensor = features.features
        return states

    def pointed(self, said: Said) -> tuple[Tensor, Tensor]:
        """The log-weights of the words (*, words) and of the sentinel (*,)."""
        scores = said.entries[POINT].scores.clamp(min=LOWEST)
        assert said.cue is not None
        alone = said.cue @ self.sentinel.sentinel
        total = torch.logaddexp(scores.logsumexp(-1), alone)
        return scores - total.unsqueeze(-1), alone - total

    def penalty(self, features: Any, targets: Tensor) -> Tensor | None:
        if not self.auxiliary:
            return None
        words, vocabulary = self.pointed(features)
        same = features.entries[POINT].words == targets.unsqueeze(-1)
        right = torch.logaddexp(words.masked_fill(~same, LOWEST).logsumexp(-1), vocabulary)
        return -self.auxiliary * right.sum()

    def begin(self, encoded: Any) -> Any:
        batch, like = encoded.mask.shape[0], self.embedding.weight
        empty = torch.zeros(batch, 0, dtype=torch.long, device=like.device)
        return PointerState(super().begin(encoded), like.new_zeros(batch, 0, like.shape[1]), empty)

    def step(self, tokens: Tensor, state: Any) -> Step:
        cells = self.advance(tokens, state.cells)
        states = cells[-1][0].unsqueeze(1)
        known = torch.cat([state.states, states], dim=1)
        words = torch.cat([state.words, tokens.unsqueeze(1)], dim=1)
        seen = torch.arange(words.shape[1], device=words.device) >= words.shape[1] - self.window
        said = self._said(states, known, words.unsqueeze(1), seen)
        return Step((self.head, said[:, 0]), PointerState(cells, known, words))

    def reorder(self, state: Any, rows: Tensor) -> Any:
        return index_state(state, rows)


class _Pointed(NamedTuple):
    model: PointerSentinel
    said: Said

    def compute(self) -> Distribution:
        return Categorical(self.model.pointed(self.said)[0].exp().detach())
