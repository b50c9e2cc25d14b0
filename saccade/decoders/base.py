"""The base class of decoders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from saccade.decoders.heads import Entries, OutputHead
from saccade.distributions import Distribution
from saccade.encoders import EncoderOutput
from saccade.kernels.top_log_probs import top_log_probs
from saccade.layers.limits import most_keys, most_positions
from saccade.memory import Memory
from saccade.reading import Reading, State

Weights = Tensor | Callable[[], Tensor] | None


class _Looked:
    """Attention weights that are computed on first access, which training never needs."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights

    @property
    def weights(self) -> Tensor | None:
        """The attention weights; None without attention."""
        if callable(self._weights):
            self._weights = self._weights()
        return self._weights


class Step(_Looked):
    """The result of one step.

    Args:
        logits: (batch, vocab), or the head and the features (batch, dim), or whatever else its `collect` returned, that
            it turns into logits on first access. A head that copies adds columns for words outside the vocabulary.
        state: the state for the next step.
        weights: (batch, keys), or a function that computes them, or None without attention.
    """

    def __init__(self, logits: Tensor | tuple[OutputHead, Any], state: Any, weights: Weights = None) -> None:
        super().__init__(weights)
        self._logits = logits
        self._said = logits if isinstance(logits, tuple) else None
        self.state = state

    @property
    def logits(self) -> Tensor:
        if isinstance(self._logits, tuple):
            head, features = self._logits
            self._logits = head.logits(features)
        return self._logits

    def shares(self) -> dict[str, Entries]:
        """What each way to say a word other than generating it adds to the words' probabilities, as logarithms."""
        if self._said is None:
            return {}
        head, features = self._said
        return head.shares(features)

    def log_probs(self) -> Tensor:
        """(batch, vocab): what a search adds up."""
        return self.logits.float().log_softmax(dim=-1)

    def best(self, count: int, without: Tensor) -> tuple[Tensor, Tensor]:
        """The largest log-probabilities (batch, count) and their tokens, except those of `without` (n,)."""
        if isinstance(self._logits, tuple):
            head, features = self._logits
            return head.best(features, count, without)
        return top_log_probs(self._logits.float(), count, without)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.logits, self.state, self.weights))


class Decoded(_Looked):
    """The result of teacher forcing over all steps.

    Args:
        features: (batch, steps, dim), or whatever else the head's `collect` returned; a loss passes it real positions
            only.
        weights: (batch, steps, keys), or a function that computes them, or None without attention.
        selection: computes the distribution over keys of all steps, for losses of what was drawn from it.
        encoded: the source that was decoded, for losses of the encoder's states.
    """

    def __init__(
        self,
        features: Any,
        weights: Weights = None,
        selection: Callable[[], Distribution] | None = None,
        encoded: EncoderOutput | None = None,
    ) -> None:
        super().__init__(weights)
        self.features = features
        self.encoded = encoded
        self._selection = selection

    @classmethod
    def of_steps(cls, features: Any, readings: Sequence[Reading]) -> Self:
        """The result of steps that each read once, at least one of them."""
        return cls(
            features,
            lambda: torch.cat([reading.weights for reading in readings], dim=1),
            selection=lambda: type(readings[0].selection).cat([reading.selection for reading in readings]),
        )

    @property
    def selection(self) -> Distribution:
        """The distribution over keys of all steps."""
        if self._selection is None:
            raise ValueError("This decoder does not give the distribution that its weights belong to.")
        return self._selection()

    def __iter__(self) -> Iterator[Any]:
        return iter((self.features, self.weights))


class Decoder(nn.Module):
    """Generates a target token by token from an encoded source.

    A new decoder sets `head` and implements `begin`, `step` and `forward`. Its state is a tuple of batch-first tensors,
    memories, plain numbers and tuples of these. In a named tuple, the field `memory` is the part that belongs to the
    sentence and is shared by all its hypotheses.
    """

    vocab_size: int
    head: OutputHead

    def begin(self, encoded: EncoderOutput) -> Any:
        """The state before the first token."""
        raise NotImplementedError

    def step(self, tokens: Tensor, state: Any) -> Step:
        """Advances one step after tokens (batch,), the previous token of each row, initially the start token."""
        raise NotImplementedError

    def forward(self, encoded: EncoderOutput, tokens: Tensor) -> Decoded:
        """Teacher forcing: the results of `step` after each of tokens (batch, steps), start token first.

        Padding after the end of a row does not affect earlier steps.
        """
        raise NotImplementedError

    def shares_memory(self) -> bool:
        """Whether `step` accepts a memory with fewer rows than the rest of the state, one row for several hypotheses.

        Neighbouring rows then read the shared memory as several queries, which avoids copying it.
        """
        return False

    def max_keys(self) -> int | None:
        """The maximum number of source positions that it can attend to, or None."""
        return most_keys(self)

    def max_steps(self) -> int | None:
        """The maximum number of steps, or None."""
        return most_positions(self)

    def select(self, state: Any, rows: Tensor) -> Any:
        """Selects batch rows of the state; rows may repeat."""
        if not hasattr(state, "memory"):
            return self.reorder(state, rows)
        keep = rows
        if self.shares_memory() and len(rows):
            others = [part for name, part in zip(state._fields, state, strict=True) if name != "memory"]
            sentences = rows // (_rows(others) // _rows(state.memory))
            distinct, counts = sentences.unique_consecutive(return_counts=True)
            keep = distinct if bool((counts == counts[0]).all()) else sentences
        return self.reorder(state._replace(memory=index_state(state.memory, keep)), rows)

    def reorder(self, state: Any, rows: Tensor) -> Any:
        """Like `select`, for rows that stay within their sentence, so that the memory need not move."""
        if not hasattr(state, "_fields"):
            return index_state(state, rows)
        return type(state)(
            *(
                part if name == "memory" else index_state(part, rows)
                for name, part in zip(state._fields, state, strict=True)
            )
        )


def index_state(state: Any, rows: Tensor) -> Any:
    """Selects batch rows of a state or of a part of it."""
    if isinstance(state, Tensor):
        return state.index_select(0, rows)
    if isinstance(state, Memory | State):
        return state.index(rows)
    if isinstance(state, tuple):
        parts = [index_state(part, rows) for part in state]
        return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
    return state  # a number of steps, or None


def _rows(state: Any) -> int:
    """The number of batch rows of the first tensor or memory in the state."""
    if isinstance(state, Tensor):
        return len(state)
    if isinstance(state, Memory):
        return len(state.values)
    parts = state if isinstance(state, list | tuple) else ()
    return next((rows for part in parts if (rows := _rows(part))), 0)


def by_memory(rows: Tensor, memory: Memory) -> Tensor:
    """Reshapes rows (n, dim) to queries (memories, n / memories, dim)."""
    memories = memory.values.shape[0]
    return rows.reshape(memories, rows.shape[0] // memories if memories else 1, *rows.shape[1:])
