"""What the limits of a training mean at its speed."""

from __future__ import annotations

import math
from collections.abc import Iterator

from saccade.training.position import Position, duration
from saccade.training.settings import TrainerSettings

BUDGET_STEPS = 20
"""The number of steps after which the speed is known."""

EARLY_STEPS, EARLY_SHARE = 3, 0.1
"""If a time limit allows few steps, the speed is measured after this many, once this share of the time has passed."""

FEW = 200
"""A training on little data with fewer steps gets a remark."""

LONG = 2 * 3600.0
"""A training that takes longer, in seconds, gets a remark."""


def speed_is_known(trainer: TrainerSettings, position: Position) -> bool:
    """Whether enough steps were made to say what the budget means."""
    if position.step >= BUDGET_STEPS or trainer.max_minutes is None:
        return position.step >= BUDGET_STEPS
    return position.step >= EARLY_STEPS and position.seconds >= EARLY_SHARE * 60.0 * trainer.max_minutes


def describe_budget(trainer: TrainerSettings, position: Position, *, epoch: int) -> Iterator[str]:
    """What the budget means in steps and hours, and what follows for the schedule.

    Args:
        position: after the step at which the speed became known.
        epoch: how many batches a pass over the data has.
    """
    per_step = position.step_seconds or 0.0
    last = position.last_step(trainer, epoch=epoch)
    if last is not None and last == position.expected_steps(trainer):
        count = last * trainer.accumulate / epoch if epoch else 0.0
        passes = f", {count:,.{int(count < 10)}f} passes over the data" if epoch else ""
        minutes = "1 minute is" if trainer.max_minutes == 1 else f"{trainer.max_minutes:g} minutes are"
        yield f"{minutes} about {last:,} steps at this speed{passes}."
    elif last is not None and last * per_step > LONG:
        yield (
            f"{last:,} steps take about {duration(last * per_step)} at this speed, validations not included. "
            "--trainer.max_minutes 60 sets a limit, which the schedule follows."
        )
    warmup = getattr(trainer.schedule, "warmup", 0)
    fitted = trainer.schedule.fitted_warmup(last)
    if fitted < warmup:
        yield f"The warm-up is {fitted:,} step{'s' * (fitted != 1)} instead of {warmup:,g}: a tenth of the training."


def describe_epochs(trainer: TrainerSettings, *, epoch: int) -> Iterator[str]:
    """A remark if the limit of epochs ends a training on little data after a few steps.

    Args:
        trainer: its limits.
        epoch: how many batches a pass over the data has.
    """
    if trainer.max_epochs is None:
        return
    steps = trainer.max_epochs * math.ceil(epoch / trainer.accumulate)
    if steps >= min(FEW, trainer.max_steps or FEW):
        return
    epochs = "1 epoch" if trainer.max_epochs == 1 else f"{trainer.max_epochs:,} epochs"
    batches = "1 batch" if epoch == 1 else f"{epoch:,} batches"
    verb, plural = "is" if trainer.max_epochs == 1 else "are", "s" * (steps != 1)
    wanted = trainer.max_steps or FEW
    limit = f", fewer than max_steps={trainer.max_steps}" if trainer.max_steps is not None else ""
    enough = math.ceil(wanted / math.ceil(epoch / trainer.accumulate))
    yield (
        f"{epochs} of {batches} {verb} {steps:,} step{plural}{limit}. If the model learns too little, train longer "
        f"(--trainer.max_epochs {enough}) or in smaller batches (--trainer.batch_tokens, now {trainer.batch_tokens})."
    )
