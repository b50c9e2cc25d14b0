"""The steps of a decoder as one matrix."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from saccade.interpretation.recording.positions import Positions

Rows = Tensor | Sequence[Sequence[int]]


def join(name: str, steps: Sequence[Tensor], places: Sequence[Positions], rows: Rows | None) -> Tensor:
    """One matrix of the weights (batch, heads, queries, keys) of several calls, zero where a call has no key.

    Args:
        name: the module, for error messages.
        steps: one tensor per call.
        places: the positions of the first key and query of each call. A query that is computed again replaces the
            earlier one.
        rows: (hypotheses, calls), the batch row of each hypothesis at each call, negative after its end.
    """
    first = [place.query for place in places]
    if rows is not None:
        table = _table(rows)
        together = _check_rows(name, steps, table)
        steps = _follow(name, steps, table, together)
        first = [None] * len(steps) if together else first
    sizes = [step.shape[0] for step in steps]
    if len(set(sizes)) > 1:
        changed = next(i for i, size in enumerate(sizes) if size != sizes[0])
        raise ValueError(
            f"The batch of {name!r} has {sizes[0]} rows at its first call and {sizes[changed]} at call {changed}: "
            "give rows=, the row of each hypothesis at each call."
        )
    starts, end = [], 0
    for step, start in zip(steps, first, strict=False):
        starts.append(end if start is None else start)
        end = starts[-1] + step.shape[2]
    queries = max(start + step.shape[2] for start, step in zip(starts, steps, strict=True))
    keys = max(place.key + step.shape[3] for place, step in zip(places, steps, strict=False))
    joined = steps[0].new_zeros(*steps[0].shape[:2], queries, keys)
    for step, query, place in zip(steps, starts, places, strict=False):
        joined[:, :, query : query + step.shape[2]] = 0.0
        joined[:, :, query : query + step.shape[2], place.key : place.key + step.shape[3]] = step
    return joined


def join_top(
    name: str, steps: Sequence[tuple[Tensor, Tensor, int]], places: Sequence[Positions], rows: Rows | None
) -> tuple[Tensor, Tensor, int]:
    """The same for the largest weights of each query: values and columns (batch, heads, queries, k), number of keys.

    Args:
        name: the module, for error messages.
        steps: for each call values, columns and the number of keys.
        places: as for `join`.
        rows: as for `join`.
    """
    keys = max(place.key + count for place, (_, _, count) in zip(places, steps, strict=True))
    most = max(values.shape[3] for values, _, _ in steps)
    values = [F.pad(part, (0, most - part.shape[3])) for part, _, _ in steps]  # weights of zero fill up short rows
    columns = [F.pad(part, (0, most - part.shape[3])) for _, part, _ in steps]
    columns = [part + place.key for part, place in zip(columns, places, strict=True)]
    queries = [Positions(0, place.query) for place in places]
    return join(name, values, queries, rows), join(name, columns, queries, rows), keys


def _table(rows: Rows) -> Tensor:
    if isinstance(rows, Tensor):
        return rows.long().cpu()
    longest = max((len(row) for row in rows), default=0)
    return torch.tensor([[*row, *[-1] * (longest - len(row))] for row in rows], dtype=torch.long).view(-1, longest)


def _check_rows(name: str, steps: Sequence[Tensor], rows: Tensor) -> bool:
    """Whether hypotheses are queries; an error if rows do not fit."""
    if rows.dim() != 2:
        raise ValueError(f"rows must be (hypotheses, calls), got {tuple(rows.shape)}.")
    if bool((rows[:, len(steps) :] >= 0).any()):
        raise ValueError(f"rows has {rows.shape[1]} calls, but {name!r} was called {len(steps)} times.")
    return _hypotheses_are_queries(name, steps, rows)


def _follow(name: str, steps: Sequence[Tensor], rows: Tensor, together: bool) -> list[Tensor]:
    if together:
        steps = [step.transpose(1, 2).flatten(0, 1).unsqueeze(2) for step in steps]
    found = []
    for number, step in enumerate(steps[: rows.shape[1]]):
        here = rows[:, number].to(step.device)
        if bool((here >= step.shape[0]).any()):
            raise ValueError(
                f"rows has row {int(here.max())} at call {number} of {name!r}, whose batch has {step.shape[0]} rows."
            )
        taken = step[here.clamp(min=0)]
        found.append(taken * (here >= 0).view(-1, 1, 1, 1).to(taken.dtype))
    return found


def _hypotheses_are_queries(name: str, steps: Sequence[Tensor], rows: Tensor) -> bool:
    """Whether the hypotheses of a sentence are queries of one batch row, which read its memory together.

    Several queries of the first call are a prompt. In later calls they are hypotheses, unless a decoder without a cache
    repeats all steps in each call: then each call has one query more than the one before.
    """
    queries = [step.shape[2] for step in steps]
    if all(count == 1 for count in queries[1:]):
        return False
    batches = [step.shape[0] for step in steps]
    if any(bool((rows[:, i] >= batch).any()) for i, batch in enumerate(batches[: rows.shape[1]])):
        return True
    if len(set(batches)) == 1 and queries == list(range(queries[0], queries[0] + len(queries))):
        raise ValueError(
            f"The calls of {name!r} have {queries[0]}, {queries[1]}, ... queries, so each call seems to repeat all "
            "steps: decode with a cache, or use the last call alone."
        )
    return True
