"""The summary of the data before training starts, and the sources in the model card."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from saccade.data.examples import Examples
from saccade.data.readers.columns import listed
from saccade.runs.plan import Plan
from saccade.runs.provenance import Provenance
from saccade.tasks import Task

HELD_OUT = {"random": "held out", "time": "the latest, held out", "leave_one_out": "the last of each user, held out"}
"""How validation examples were chosen, for the model card."""

MANY = 0.05
"""Training warns if more than this share of the examples is left out."""


FEW = 10
"""With fewer examples nothing is learned."""


def summary(plan: Plan, data: Provenance, examples: Examples, read: int, rows: int) -> Iterator[str]:
    """What a user should know before training starts.

    Args:
        plan: what is trained.
        data: where its examples come from.
        examples: how they were read.
        read: how many there are.
        rows: how many rows they give.
    """
    unread, ordered = examples.unread(), examples.ordered()
    skipped = f", skipped {data.skipped:,} bad row{'s' * (data.skipped != 1)}" if data.skipped else ""
    yield f"Read {counted(read)} from {data.sources['train']}{skipped}."
    if ordered:
        yield f"  Columns, in their order: {', '.join(ordered)}. If that is wrong, name them (--data.columns)."
    if unread:
        yield f"{'WARNING: ' if plan.task.about_unread else '  '}{unread_columns(plan.task, unread)}"
    if data.skipped > MANY * (data.skipped + read):
        share = f"{data.skipped / (data.skipped + read):.0%}"
        yield f"WARNING: {share} of the rows are skipped as bad. Correct them if that is not what you want."
    out = sum(data.left_out.values())
    for reason, count in data.left_out.items():
        yield f"  Left out {count:,}: {reason}."
    for reason, count in data.truncated.items():
        yield f"  Truncated {count:,}: {reason}."
    if out > MANY * (out + data.train):
        share = f"{out / (out + data.train):.0%}"
        yield f"WARNING: {share} of the training examples are left out. Raise the limit if that is not what you want."
    cut = "" if rows == data.train else f" that make {rows:,} rows"
    valid = f"validating on {data.valid:,} ({data.sources.get('valid')})" if data.valid else "without validation"
    yield f"Training on {counted(data.train)}{cut}, {valid}."
    if rows < FEW:
        yield "WARNING: That is enough to try out the command, but too little to learn from."
    warnings: dict[str, list[str]] = {}  # a vocabulary that two roles share has one
    for role, field in plan.task.fields.items():
        if field.learned():
            yield f"  {role}: {field.learned()}"
        for warning in field.warnings(data.train):
            warnings.setdefault(warning, []).append(role)
    for warning, roles in warnings.items():
        yield f"WARNING: {' and '.join(roles)}: {warning}"
    for warning in plan.task.warnings(plan.data.columns or {}):
        yield f"WARNING: {warning}"


def unread_columns(task: Task, columns: Sequence[str]) -> str:
    """Which columns are not read, and what that may mean; empty if all are."""
    return f"Columns that are not read: {listed(columns)}. {task.about_unread}".strip() if columns else ""


def counted(examples: int, different: int | None = None) -> str:
    """`1 example`, or `20 examples with 3 different inputs`."""
    inputs = f" with {different:,} different input{'s' * (different != 1)}" if different not in (None, examples) else ""
    return f"{examples:,} example{'s' * (examples != 1)}{inputs}"


def described_sources(sources: Mapping[str, Any], plan: Plan, share: float) -> dict[str, str]:
    """The sources of training and validation, and what was done to them."""
    found = {name: described(source) for name, source in sources.items()}
    if plan.data.folds is not None:
        count = f" of {plan.data.folds}" if isinstance(plan.data.folds, int) else ""
        found["train"] += f" without fold {plan.data.fold}{count}"
    if share:
        found["valid"] = f"{HELD_OUT[plan.data.split]} from the training examples"
    return found


def described(source: Any) -> str:
    """A source of examples as the card names it."""
    if source is None:
        return "none"
    if isinstance(source, str):
        return ", ".join(map(_shown, source.split(",")))
    if len(source) and isinstance(source[0], str):
        return ", ".join(map(described, source))
    return f"{len(source):,} examples in memory"


def _shown(file: str) -> str:
    """A file as the card names it, without revealing where it is on this machine."""
    if not os.path.isabs(file):
        return file
    near = os.path.relpath(file)
    return os.path.basename(file) if near.startswith("..") else near
