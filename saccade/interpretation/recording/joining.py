"""The steps of a decoder as one matrix."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

Rows = Tensor | Sequence[Sequence[int]]


def join(name: str, steps: Sequence[Tensor], rows: Rows | None) -> Tensor:
    """Concatenates the weights (batch, heads, queries, keys) of several calls, padded to the largest number of keys.

    Args:
        name: the module, for error messages.
        steps: one tensor per call.
        rows: (hypotheses, calls), the batch row of each hypothesis at each call, negative after its end.
    """
    keys = max(step.shape[3] for step in steps)
    steps = [F.pad(step, (0, keys - step.shape[3])) for step in steps]
    if rows is not None:
        steps = _follow(name, steps, _table(rows))
    sizes = [step.shape[0] for step in steps]
    if len(set(sizes)) > 1:
        changed = next(i for i, size in enumerate(sizes) if size != sizes[0])
        raise ValueError(
            f"The batch of {name!r} has {sizes[0]} rows at its first call and {sizes[changed]} at call {changed}: "
            "give rows=, the row of each hypothesis at each call."
        )
    return torch.cat(list(steps), dim=2)


def _table(rows: Rows) -> Tensor:
    if isinstance(rows, Tensor):
        return rows.long().cpu()
    longest = max((len(row) for row in rows), default=0)
    return torch.tensor([[*row, *[-1] * (longest - len(row))] for row in rows], dtype=torch.long).view(-1, longest)


def _follow(name: str, steps: Sequence[Tensor], rows: Tensor) -> list[Tensor]:
    if rows.dim() != 2:
        raise ValueError(f"rows must be (hypotheses, calls), got {tuple(rows.shape)}.")
    count = rows.shape[1]
    if bool((rows[:, len(steps) :] >= 0).any()):
        raise ValueError(f"rows has {count} calls, but {name!r} was called {len(steps)} times.")
    if _hypotheses_are_queries(name, steps, rows):
        steps = [step.transpose(1, 2).flatten(0, 1).unsqueeze(2) for step in steps]
    found = []
    for number, step in enumerate(steps[:count]):
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
            f"The calls of {name!r} have {queries[0]}, {queries[1]}, ... queries, so each seems to repeat all steps: "
            "decode with a cache, or use the last call alone."
        )
    return True
