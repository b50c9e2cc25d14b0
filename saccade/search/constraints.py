"""What hypotheses may contain: functions of the scores of the next token and of the past, which compose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypedDict, cast

import torch
from torch import Tensor

from saccade.kernels.top_log_probs import top_log_probs

IMPOSSIBLE = float("-inf")
Prefix = Sequence[int] | Sequence[Sequence[int]]
Forbidden = Sequence[int | Sequence[int]]


class Past(NamedTuple):
    """What is known before the next token is chosen.

    Args:
        tokens: (rows, steps), the hypotheses so far.
        sentences: (rows,), which sentence of the batch each row belongs to.
    """

    tokens: Tensor
    sentences: Tensor


Constraint = Callable[[Tensor, Past], Tensor]
"""Takes scores (rows, vocab), which it may change in place, and gives them with what is forbidden at -infinity."""


def forbid(tokens: Sequence[int]) -> Constraint:
    """Never these tokens."""
    ids = torch.tensor(sorted(set(tokens)), dtype=torch.long)

    def constraint(scores: Tensor, past: Past) -> Tensor:
        return scores.index_fill_(1, ids.to(scores.device), IMPOSSIBLE)

    return constraint


def forbid_sequences(sequences: Sequence[Sequence[int]]) -> Constraint:
    """Never one of these sequences; what they begin with may be written, their last token not after it."""
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
    """No end before so many tokens."""

    def constraint(scores: Tensor, past: Past) -> Tensor:
        if past.tokens.shape[1] < length:
            scores[:, eos] = IMPOSSIBLE
        return scores

    return constraint


def no_repeat(size: int) -> Constraint:
    """No sequence of so many tokens twice."""

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
    """Which tokens must stand at which places: a prefix of each sentence, and single tokens of all.

    Args:
        prefix: tokens that every hypothesis begins with, or a list of them for each sentence.
        forced: from places, counted from 0, to tokens; where there is a prefix too, the prefix counts.
        batch: the number of sentences.
    """

    def __init__(self, prefix: Prefix, forced: Mapping[int, int], *, batch: int, device: torch.device) -> None:
        same = all(isinstance(token, int) for token in prefix)
        prefixes = cast(Sequence[Sequence[int]], [prefix] * batch if same else prefix)
        if len(prefixes) != batch:
            raise ValueError(f"prefix holds one list for each of the {batch} sentences, got {len(prefixes)} lists.")
        if any(place < 0 for place in forced):
            raise ValueError(f"Places of forced tokens are counted from 0, got {dict(forced)}.")
        width = max([len(tokens) for tokens in prefixes] + [place + 1 for place in forced], default=0)
        table = torch.full((batch, width), -1, dtype=torch.long)
        for place, token in forced.items():
            table[:, place] = token
        for row, tokens in enumerate(prefixes):
            table[row, : len(tokens)] = torch.tensor(tokens, dtype=torch.long)
        self.table = table.to(device)

    def at(self, past: Past) -> Tensor | None:
        """The token that each row (rows,) must take next, -1 for any; None if all are free."""
        place = past.tokens.shape[1]
        return self.table[past.sentences, place] if place < self.table.shape[1] else None


class Wishes(TypedDict, total=False):
    """What every search takes beside its own arguments: those of `Rules`."""

    min_length: int
    no_repeat_ngram: int
    forbidden: Forbidden
    forced: Mapping[int, int] | None
    prefix: Prefix
    constraints: Sequence[Constraint]


class Rules:
    """All constraints of a search: required tokens have the first say, and where nothing is allowed, the end is.

    Args:
        mask: (batch, keys), of the sources.
        eos: the id of the end.
        never: ids that are never written: begin and padding.
        min_length: the fewest tokens, without the end.
        no_repeat_ngram: no sequence of so many tokens occurs twice; 0 allows all.
        forbidden: tokens, and sequences of tokens, that do not occur.
        forced: from places, counted from 0, to the tokens that stand there.
        prefix: tokens to begin with, the same for all sentences or a list for each.
        constraints: more of them.
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
                raise ValueError(f"{name} is at least 0, got {value}.")
        self.eos = eos
        self.required = Required(prefix, forced or {}, batch=mask.shape[0], device=mask.device)
        single = [token for token in forbidden if isinstance(token, int)]
        longer = [sequence for sequence in forbidden if not isinstance(sequence, int)]
        if not all(longer):
            raise ValueError("A forbidden sequence has at least one token, got an empty one.")
        self.without = torch.tensor(sorted({*never, *single}), dtype=torch.long, device=mask.device)
        self.constraints: list[Constraint] = [forbid([*never, *single])]
        if longer:
            self.constraints.append(forbid_sequences(longer))
        if min_length:
            self.constraints.append(at_least(min_length, eos=eos))
        if no_repeat_ngram:
            self.constraints.append(no_repeat(no_repeat_ngram))
        self.constraints += constraints

    def best(self, logits: Tensor, past: Past, count: int) -> tuple[Tensor, Tensor]:
        """The largest log-probabilities (rows, count) of what is allowed, the largest first, and their tokens."""
        count = min(count, logits.shape[1])
        if len(self.constraints) == 1 and self.required.at(past) is None:  # single tokens alone are forbidden
            return top_log_probs(logits.float(), count, self.without)
        scores = self(logits.float().log_softmax(dim=-1), past)
        found = scores.topk(count)
        return found.values, found.indices

    def __call__(self, scores: Tensor, past: Past) -> Tensor:
        """The scores (rows, vocab), changed in place where something is forbidden."""
        required = self.required.at(past)
        end = scores[:, self.eos].clone()
        kept = None if required is None else scores.gather(1, required.clamp(min=0)[:, None])
        for constraint in self.constraints:
            scores = constraint(scores, past)
        if required is not None and kept is not None:
            row = (required >= 0).nonzero().squeeze(1)
            scores[row] = IMPOSSIBLE
            scores[row, required[row]] = kept[row, 0]
        if len(self.constraints) > 1 or required is not None:  # to forbid single tokens leaves others
            stuck = scores.amax(dim=1) == IMPOSSIBLE
            scores[:, self.eos] = torch.where(stuck, end, scores[:, self.eos])
        return scores
