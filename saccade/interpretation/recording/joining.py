"""The steps of a decoder as one matrix."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

Rows = Tensor | Sequence[Sequence[int]]


def join(name: str, steps: Sequence[Tensor], rows: Rows | None) -> Tensor:
    """Weights (batch, heads, queries, keys) of each call under each other, with as many keys as the longest has.

    Args:
        name: for errors.
        steps: one tensor for each call.
        rows: (hypotheses, calls), the row that a hypothesis had at each call, negative after its end.
    """
    keys = max(step.shape[3] for step in steps)
    steps = [F.pad(step, (0, keys - step.shape[3])) for step in steps]
    if rows is not None:
        steps = _follow(name, steps, _table(rows))
    sizes = [step.shape[0] for step in steps]
    if len(set(sizes)) > 1:
        changed = next(i for i, size in enumerate(sizes) if size != sizes[0])
        raise ValueError(
            f"The batch of {name!r} has {sizes[0]} rows at its first call and {sizes[changed]} at call {changed}: say "
            "with rows= which row each hypothesis had at each call."
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
    found = []
    for number, step in enumerate(steps[:count]):
        here = rows[:, number].to(step.device)
        if bool((here >= step.shape[0]).any()):
            raise ValueError(
                f"rows names row {int(here.max())} at call {number} of {name!r}, which has {step.shape[0]}."
            )
        taken = step[here.clamp(min=0)]
        found.append(taken * (here >= 0).view(-1, 1, 1, 1).to(taken.dtype))
    return found
