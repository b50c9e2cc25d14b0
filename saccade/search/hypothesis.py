"""The results of a search, and the interface of the models it searches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from saccade.search.constraints import Stepped


class Hypothesis(NamedTuple):
    """One output.

    Args:
        tokens: the tokens without start and end.
        score: the log-probability after length normalisation and penalties, by which hypotheses are ranked.
        log_prob: the sum over the steps, including the end token if it was reached.
        finished: whether the end token was reached before the maximum length.
        weights: (steps, keys), the attention weights of each step, including the end token; None without attention.
        rows: its row in the model's batch at each step, to find its part of what `saccade.record` recorded.
    """

    tokens: list[int]
    score: float
    log_prob: float
    finished: bool
    weights: Tensor | None
    rows: list[int]


class Searchable(Protocol):
    """A model that generates token by token (see `saccade.decoders.Decoder`)."""

    def begin(self, encoded: Any) -> Any: ...
    def step(self, tokens: Tensor, state: Any) -> Stepped: ...
    def select(self, state: Any, rows: Tensor) -> Any: ...
    def reorder(self, state: Any, rows: Tensor) -> Any: ...


class Trail:
    """Back-pointers: for each step, which row of the previous step each row continues.

    Hypotheses change rows when others are dropped or leave the batch, so attention weights are assembled at the end,
    and only for the hypotheses that are returned.
    """

    def __init__(self) -> None:
        self._parents: list[Tensor] = []
        self._weights: list[Tensor] = []

    def looked(self, weights: Tensor | None) -> None:
        """Records the attention weights (rows, keys) of this step."""
        if weights is not None:
            self._weights.append(weights)

    def continued(self, parents: Tensor) -> None:
        """Records which row of this step each row of the next one continues."""
        self._parents.append(parents)

    def before(self, rows: Tensor) -> Tensor:
        """The rows of the previous step that these rows of the last step continue."""
        return self._parents[-1][rows] if self._parents else rows

    def rows(self, steps: Sequence[int], rows: Sequence[int]) -> list[list[int]]:
        """The row at every step of each hypothesis, given its last step and row; a step of -1 means no steps."""
        found: list[list[int]] = []
        parents = [rows_before.tolist() for rows_before in self._parents[: max(steps, default=0)]]
        for step, row in zip(steps, rows, strict=True):
            way = [row] if step >= 0 else []
            for before in reversed(parents[: max(step, 0)]):
                way.append(before[way[-1]])
            found.append(way[::-1])
        return found

    def weights(self, rows: Sequence[Sequence[int]]) -> list[Tensor | None]:
        """The attention weights (steps, keys) of each hypothesis, given its rows."""
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
    """Hypotheses that have left the search, to be ranked at the end."""

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
        """Adds n hypotheses; all arguments are (n,) except tokens (n, length); `rows` are those of the last `step`."""
        values = zip(sentences.tolist(), rows.tolist(), log_probs.tolist(), scores.tolist(), tokens, strict=True)
        self._entries += [_Entry(*value, step, finished) for value in values]

    def best(self, batch: int, count: int) -> list[list[Hypothesis]]:
        """Up to `count` hypotheses per sentence: finished ones first, then by score."""
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
    """The maximum length of each sentence (batch,)."""
    found = torch.as_tensor(max_length, device=device)
    if found.dim() > 1 or (found.dim() == 1 and len(found) != batch):
        raise ValueError(f"max_length must be a number or one for each of {batch} sentences, got {tuple(found.shape)}.")
    if found.numel() and int(found.min()) < 0:
        raise ValueError(f"max_length must be 0 or more, got {int(found.min())}.")
    return found.expand(batch)
