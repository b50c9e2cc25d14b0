"""Constraints on hypotheses: composable functions of the next token's scores and the past."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypedDict, cast

import torch
from torch import Tensor

IMPOSSIBLE = float("-inf")
Prefix = Sequence[int] | Sequence[Sequence[int]]
Forbidden = Sequence[int | Sequence[int]]


class Past(NamedTuple):
    """The hypotheses before the next token is chosen.

    Args:
        tokens: (rows, steps), the hypotheses so far.
        sentences: (rows,), the sentence of the batch that each row belongs to.
    """

    tokens: Tensor
    sentences: Tensor


class Stepped(Protocol):
    """The result of one step of a model, such as `saccade.decoders.Step`."""

    state: Any

    @property
    def logits(self) -> Tensor:
        """(rows, vocab)."""
        ...

    @property
    def weights(self) -> Tensor | None:
        """(rows, keys); None without attention."""
        ...

    def log_probs(self) -> Tensor:
        """(rows, vocab), new tensors, which may be modified."""
        ...

    def best(self, count: int, without: Tensor) -> tuple[Tensor, Tensor]:
        """The largest log-probabilities (rows, count) and their tokens, except those of `without` (n,)."""
        ...


Constraint = Callable[[Tensor, Past], Tensor]
"""Takes scores (rows, vocab), which it may modify in place, and returns them with forbidden tokens at -infinity."""


def forbid(tokens: Sequence[int]) -> Constraint:
    """Forbids these tokens."""
    ids = torch.tensor(sorted(set(tokens)), dtype=torch.long)

    def constraint(scores: Tensor, past: Past) -> Tensor:
        return scores.index_fill_(1, ids.to(scores.device), IMPOSSIBLE)

    return constraint


def forbid_sequences(sequences: Sequence[Sequence[int]]) -> Constraint:
    """Forbids these sequences: the last token is forbidden after the rest of its sequence."""
    starts = [torch.tensor(sequence[:-1], dtype=torch.long) for sequence in sequences]

    def constraint(scores: Tensor, past: Past) -> Tensor:
        steps = past.tokens.shape[1]
        for start, sequence in zip(starts, sequences, strict=True):
            if len(start) <= steps:
                begun = (past.tokens[:, steps - len(start) :] == start.to(scores.device)).all(dim=1)
                scores[begun, sequence[-1]] = IMPOSSIBLE
        return scores

    return constraint


def at_least(length: int, *, eos: int) -> Constraint:
    """Forbids the end token before `length` tokens."""

    def constraint(scores: Tensor, past: Past) -> Tensor:
        if past.tokens.shape[1] < length:
            scores[:, eos] = IMPOSSIBLE
        return scores

    return constraint


def no_repeat(size: int) -> Constraint:
    """Forbids repeating any sequence of `size` tokens."""

    def constraint(scores: Tensor, past: Past) -> Tensor:
        rows, steps = past.tokens.shape
        if steps < size:
            return scores
        starts = past.tokens[:, :-1].unfold(1, size - 1, 1) if size > 1 else past.tokens.new_zeros(rows, steps, 0)
        follows = past.tokens[:, size - 1 :]
        again = (starts == past.tokens[:, None, steps - size + 1 :]).all(dim=-1)
        row, place = again.nonzero(as_tuple=True)
        scores[row, follows[row, place]] = IMPOSSIBLE
        return scores

    return constraint


class Required:
    """Required tokens: a prefix for each sentence, and single tokens at given positions for all.

    Args:
        prefix: tokens that every hypothesis starts with, or a list of them for each sentence.
        forced: maps positions, counted from 0, to tokens; the prefix takes precedence.
        batch: the number of sentences.
    """

    def __init__(self, prefix: Prefix, forced: Mapping[int, int], *, batch: int, device: torch.device) -> None:
        same = all(isinstance(token, int) for token in prefix)
        prefixes = cast(Sequence[Sequence[int]], [prefix] * batch if same else prefix)
        if len(prefixes) != batch:
            raise ValueError(f"prefix needs one list for each of the {batch} sentences, got {len(prefixes)} lists.")
        if any(place < 0 for place in forced):
            raise ValueError(f"Positions of forced tokens must be 0 or more, got {dict(forced)}.")
        width = max([len(tokens) for tokens in prefixes] + [place + 1 for place in forced], default=0)
        table = torch.full((batch, width), -1, dtype=torch.long)
        for place, token in forced.items():
            table[:, place] = token
        for row, tokens in enumerate(prefixes):
            table[row, : len(tokens)] = torch.tensor(tokens, dtype=torch.long)
        self.table = table.to(device)

    def at(self, past: Past) -> Tensor | None:
        """The token that each row (rows,) must take next, -1 for any; None if all rows are free."""
        place = past.tokens.shape[1]
        return self.table[past.sentences, place] if place < self.table.shape[1] else None


class Wishes(TypedDict, total=False):
    """The arguments of `Rules`, which every search accepts in addition to its own."""

    min_length: int
    no_repeat_ngram: int
    forbidden: Forbidden
    forced: Mapping[int, int] | None
    prefix: Prefix
    constraints: Sequence[Constraint]


class Rules:
    """All constraints of a search: required tokens take precedence, and if nothing is allowed, the end token is.

    Args:
        mask: (batch, keys), the mask of the sources.
        eos: the id of the end token.
        never: ids that are never generated: start and padding tokens.
        min_length: the minimum number of tokens, not counting the end token.
        no_repeat_ngram: forbids repeating any sequence of this many tokens; 0 allows repetition.
        forbidden: tokens, and sequences of tokens, that must not occur.
        forced: maps positions, counted from 0, to the tokens required there.
        prefix: tokens to start with, the same for all sentences or a list for each.
        constraints: further constraints.
    """

    def __init__(
        self,
        mask: Tensor,
        *,
        eos: int,
        never: Sequence[int] = (),
        min_length: int = 0,
        no_repeat_ngram: int = 0,
        forbidden: Forbidden = (),
        forced: Mapping[int, int] | None = None,
        prefix: Prefix = (),
        constraints: Sequence[Constraint] = (),
    ) -> None:
        for name, value in (("min_length", min_length), ("no_repeat_ngram", no_repeat_ngram)):
            if value < 0:
                raise ValueError(f"{name} must be 0 or more, got {value}.")
        self.eos = eos
        self.required = Required(prefix, forced or {}, batch=mask.shape[0], device=mask.device)
        single = [token for token in forbidden if isinstance(token, int)]
        longer = [sequence for sequence in forbidden if not isinstance(sequence, int)]
        if not all(longer):
            raise ValueError("forbidden contains an empty sequence: give each at least one token.")
        self.without = torch.tensor(sorted({*never, *single}), dtype=torch.long, device=mask.device)
        self.constraints: list[Constraint] = [forbid([*never, *single])]
        if longer:
            self.constraints.append(forbid_sequences(longer))
        if min_length:
            self.constraints.append(at_least(min_length, eos=eos))
        if no_repeat_ngram:
            self.constraints.append(no_repeat(no_repeat_ngram))
        self.constraints += constraints

    def best(self, given: Stepped, past: Past, count: int) -> tuple[Tensor, Tensor]:
        """The largest log-probabilities (rows, count) of allowed tokens, in descending order, and the tokens.

        `given` is the result of a model's step.
        """
        if len(self.constraints) == 1 and self.required.at(past) is None:  # only single tokens are forbidden
            return given.best(count, self.without)
        scores = self(given.log_probs(), past)
        found = scores.topk(min(count, scores.shape[1]))
        return found.values, found.indices

    def __call__(self, scores: Tensor, past: Past) -> Tensor:
        """The scores (rows, vocab), modified in place where tokens are forbidden."""
        required = self.required.at(past)
        end = scores[:, self.eos].clone()
        kept = None if required is None else scores.gather(1, required.clamp(min=0)[:, None])
        for constraint in self.constraints:
            scores = constraint(scores, past)
        if required is not None and kept is not None:
            row = (required >= 0).nonzero().squeeze(1)
            scores[row] = IMPOSSIBLE
            scores[row, required[row]] = kept[row, 0]
        if len(self.constraints) > 1 or required is not None:  # forbidding single tokens always leaves others
            stuck = scores.amax(dim=1) == IMPOSSIBLE
            scores[:, self.eos] = torch.where(stuck, end, scores[:, self.eos])
        return scores
