"""Search with two models of the target: a decoder, and CTC over the encoder's states."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from saccade.decoders.base import index_state
from saccade.decoders.ctc import CTC, CTCPrefixes
from saccade.search.hypothesis import Searchable

LOWEST = -1e4
"""The log-probability of outputs that CTC cannot write: such a hypothesis stays possible as a last resort."""


class JointStep:
    """A step whose log-probabilities are those of two models, and do not sum to one.

    Args:
        log_probs: (rows, vocab).
        state: the state for the next step.
        given: the step of the decoder.
    """

    def __init__(self, log_probs: Tensor, state: Any, given: Any) -> None:
        self.logits, self.state, self._given = log_probs, state, given

    @property
    def weights(self) -> Tensor | None:
        """The attention weights of the decoder."""
        found: Tensor | None = self._given.weights
        return found

    def log_probs(self) -> Tensor:
        """(rows, vocab), which may be modified."""
        return self.logits.clone()

    def best(self, count: int, without: Tensor) -> tuple[Tensor, Tensor]:
        """The largest log-probabilities (rows, count) and their tokens, except those of `without` (n,)."""
        allowed = self.log_probs().index_fill_(1, without, -torch.inf)
        found = allowed.topk(min(count, allowed.shape[1]))
        return found.values, found.indices


class JointState(NamedTuple):
    """The prefixes of all sentences; and per row the decoder's state, log gamma, the last token, log psi of each
    continuation, and the sentence."""

    prefixes: CTCPrefixes
    inner: Any
    gamma: Tensor
    last: Tensor
    table: Tensor | None
    sentences: Tensor


class JointCTC:
    r"""A model that a search uses in place of its decoder, for scores of both.

    .. math:: (1 - \lambda) \log p_{\text{attention}}(y) + \lambda \log p_{\text{CTC}}(y)

    Each step adds the change in the probability that CTC's output begins with the hypothesis.

    Args:
        model: with `begin`, `step`, `select` and `reorder`.
        ctc: reads the states of the same encoder.
        weight: lambda.
        eos: the id of the end token.

    Reference:
        Hori et al. (2017), "Joint CTC/attention decoding for end-to-end speech recognition", section 3.3.
    """

    def __init__(self, model: Searchable, ctc: CTC, weight: float, *, eos: int = 2) -> None:
        self.model, self.ctc, self.weight, self.eos = model, ctc, weight, eos

    def begin(self, encoded: Any) -> JointState:
        """The state before the first token."""
        prefixes = CTCPrefixes(self.ctc(encoded.states), encoded.mask, eos=self.eos)
        gamma = prefixes.begin()
        sentences = torch.arange(len(gamma), device=gamma.device)
        last = torch.full_like(sentences, -1)
        return JointState(prefixes, self.model.begin(encoded), gamma, last, None, sentences)

    def step(self, tokens: Tensor, state: JointState) -> JointStep:
        """Advances one step after tokens (rows,)."""
        given = self.model.step(tokens, state.inner)
        gamma, before = state.gamma, torch.zeros((), device=tokens.device)
        if state.table is not None:
            gamma = state.prefixes.advance(gamma, state.last, tokens, state.sentences)
            before = state.table.gather(1, tokens[:, None])
        table = state.prefixes.scores(gamma, tokens, state.sentences).clamp(min=LOWEST)
        log_probs = (1.0 - self.weight) * given.log_probs() + self.weight * (table - before)
        after = state._replace(inner=given.state, gamma=gamma, last=tokens, table=table)
        return JointStep(log_probs, after, given)

    def select(self, state: JointState, rows: Tensor) -> JointState:
        """Selects batch rows of the state."""
        return self._indexed(state, rows, self.model.select(state.inner, rows))

    def reorder(self, state: JointState, rows: Tensor) -> JointState:
        """Selects rows of the state that stay within their sentence."""
        return self._indexed(state, rows, self.model.reorder(state.inner, rows))

    @staticmethod
    def _indexed(state: JointState, rows: Tensor, inner: Any) -> JointState:
        gamma, last, table, sentences = (index_state(part, rows) for part in state[2:])
        return JointState(state.prefixes, inner, gamma, last, table, sentences)
