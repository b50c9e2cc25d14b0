"""What a search finds, and what it searches in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor


class Hypothesis(NamedTuple):
    """One output.

    Args:
        tokens: without begin and end.
        score: the log-probability after length normalisation and penalties; hypotheses are ranked by it.
        log_prob: the sum over the steps, the end of the sentence included if it was reached.
        finished: whether the end was reached before the maximal length.
        weights: (steps, keys), where each step looked, that of the end included; None without attention.
        rows: the row of the model's batch that it had at each step, to find its part of what `saccade.record` saw.
    """

    tokens: list[int]
    score: float
    log_prob: float
    finished: bool
    weights: Tensor | None
    rows: list[int]


class Searchable(Protocol):
    """A model that writes token by token (see `saccade.decoders.Decoder`)."""

    def begin(self, encoded: Any) -> Any: ...
    def step(self, tokens: Tensor, state: Any) -> Any: ...
    def select(self, state: Any, rows: Tensor) -> Any: ...
    def reorder(self, state: Any, rows: Tensor) -> Any: ...


class Trail:
    """The way back from a row of a step to the first step: which row of the step before each one continues.

    Hypotheses change rows when others are dropped or leave the batch. So where each looked is put together at the
    end, and only for those that are returned.
    """

    def __init__(self) -> None:
        self._parents: list[Tensor] = []
        self._weights: list[Tensor] = []

    def looked(self, weights: Tensor | None) -> None:
        """Notes where the rows (rows, keys) of this step looked."""
        if weights is not None:
            self._weights.append(weights)

    def continued(self, parents: Tensor) -> None:
        """Notes which rows of this step the rows of the next one continue."""
        self._parents.append(parents)

    def before(self, rows: Tensor) -> Tensor:
        """The rows of the step before that these ones of the last step continue."""
        return self._parents[-1][rows] if self._parents else rows

    def rows(self, steps: Sequence[int], rows: Sequence[int]) -> list[list[int]]:
        """For each hypothesis that took its last step as this row: its row at every step; a step of -1 is none."""
        found: list[list[int]] = []
        parents = [rows_before.tolist() for rows_before in self._parents[: max(steps, default=0)]]
        for step, row in zip(steps, rows, strict=True):
            way = [row] if step >= 0 else []
            for before in reversed(parents[: max(step, 0)]):
                way.append(before[way[-1]])
            found.append(way[::-1])
        return found

    def weights(self, rows: Sequence[Sequence[int]]) -> list[Tensor | None]:
        """(steps, keys) for each hypothesis that had these rows."""
        if not self._weights:
            return [None] * len(rows)
        first = self._weights[0]
        found = [first.new_zeros(len(way), first.shape[1]) for way in rows]
        for step in range(max(map(len, rows), default=0)):
            on = [number for number, way in enumerate(rows) if len(way) > step]
            taken = self._weights[step][torch.tensor([rows[number][step] for number in on], device=first.device)]
            for number, looked in zip(on, taken, strict=True):
                found[number][step] = looked
        return list(found)


class _Entry(NamedTuple):
    sentence: int
    row: int
    log_prob: float
    score: float
    tokens: Tensor
    step: int
    finished: bool


class Harvest:
    """Hypotheses that left the search, to be ranked at its end."""

    def __init__(self, trail: Trail) -> None:
        self._trail = trail
        self._entries: list[_Entry] = []

    def add(
        self,
        *,
        sentences: Tensor,
        rows: Tensor,
        step: int,
        tokens: Tensor,
        log_probs: Tensor,
        scores: Tensor,
        finished: bool,
    ) -> None:
        """Takes n hypotheses in; everything is (n,) but tokens (n, length); `rows` are theirs at their last `step`."""
        values = zip(sentences.tolist(), rows.tolist(), log_probs.tolist(), scores.tolist(), tokens, strict=True)
        self._entries += [_Entry(*value, step, finished) for value in values]

    def best(self, batch: int, count: int) -> list[list[Hypothesis]]:
        """For each sentence up to so many: finished ones first, then by score."""
        groups: list[list[_Entry]] = [[] for _ in range(batch)]
        for entry in self._entries:
            groups[entry.sentence].append(entry)
        chosen = [sorted(group, key=lambda e: (e.finished, e.score), reverse=True)[:count] for group in groups]
        flat = [entry for group in chosen for entry in group]
        rows = self._trail.rows([entry.step for entry in flat], [entry.row for entry in flat])
        ways = iter(zip(self._trail.weights(rows), rows, strict=True))
        return [
            [Hypothesis(e.tokens.tolist(), e.score, e.log_prob, e.finished, *next(ways)) for e in group]
            for group in chosen
        ]


def limits(max_length: int | Sequence[int] | Tensor, batch: int, device: torch.device) -> Tensor:
    """The maximal length of each sentence (batch,)."""
    found = torch.as_tensor(max_length, device=device)
    if found.dim() > 1 or (found.dim() == 1 and len(found) != batch):
        raise ValueError(f"max_length is one number or one for each of {batch} sentences, got {tuple(found.shape)}.")
    if found.numel() and int(found.min()) < 0:
        raise ValueError(f"max_length is at least 0, got {int(found.min())}.")
    return found.expand(batch)
