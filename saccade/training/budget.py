"""What the limits of a training mean at its speed."""

from __future__ import annotations

from collections.abc import Iterator

from saccade.training.position import Position, duration
from saccade.training.settings import Settings

BUDGET_STEPS = 20
"""After so many steps the speed is known."""

LONG = 2 * 3600.0
"""Seconds from which a training deserves a remark."""


def expected_steps(trainer: Settings, seconds: float) -> int | None:
    """How many steps fit into `max_minutes`, if the first ones took so many seconds; None without that limit."""
    if trainer.max_minutes is None:
        return None
    return max(BUDGET_STEPS, round(60.0 * trainer.max_minutes * BUDGET_STEPS / max(seconds, 1e-9)))


def describe_budget(trainer: Settings, position: Position, *, epoch: int) -> Iterator[str]:
    """What the budget means in steps and hours, and what follows for the schedule."""
    per_step = position.seconds / BUDGET_STEPS
    last = position.last_step(trainer)
    if position.expected_steps is not None and last == position.expected_steps:
        passes = f", {last / epoch:.1f} passes over the data" if epoch else ""
        yield f"{trainer.max_minutes:g} minutes are about {last:,} steps at this speed{passes}."
    elif last is not None and last * per_step > LONG:
        yield (
            f"{last:,} steps take about {duration(last * per_step)} at this speed, validations not included. "
            "--trainer.max_minutes 60 sets a limit; a -small configuration needs less."
        )
    warmup = getattr(trainer.schedule, "warmup", 0)
    fitted = trainer.schedule.fitted_warmup(last)
    if fitted < warmup:
        yield f"The warm-up is {fitted:,} steps instead of {warmup:,}: a tenth of the training."
