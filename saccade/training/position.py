"""How far a training is, and whether it ends there."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from saccade.training.settings import TrainerSettings

FEW_STEPS = 10
"""A time limit that allows fewer steps is too short for the model."""


class Result(NamedTuple):
    """How a training ended."""

    step: int
    """How many steps were made."""
    reason: str
    """What ended it: max_steps, max_epochs, max_minutes or patience."""
    chosen: str
    """Which weights the model has now: "best", "averaged" or "last"."""
    chosen_step: int
    """After which step they were those of the model."""
    scores: dict[str, float]
    """Their validation figures; empty without validation data."""
    seconds: float
    """How long it took, including validations and the time before a resumption."""


@dataclass
class Position:
    """The position of a training, in plain numbers."""

    step: int = 0
    seconds: float = 0.0
    batches: int = 0
    scores: dict[str, float] | None = None
    """The figures of the last validation."""
    best_step: int | None = None
    best_score: float | None = None
    best_scores: dict[str, float] | None = None
    waited: int = 0
    """Validations since the best."""
    validated: int = 0
    """The step of the last validation."""
    pending: bool = False
    """Whether an interruption prevented a validation that is due at this step."""
    step_seconds: float | None = None
    """How long a step takes on average, validations included, once the speed is known."""

    def expected_steps(self, trainer: TrainerSettings) -> int | None:
        """How many steps fit into the time limit, which a resumed training may have changed; None if unknown."""
        if trainer.max_minutes is None or self.step_seconds is None:
            return None
        return max(1, round(60.0 * trainer.max_minutes / max(self.step_seconds, 1e-9)))

    def last_step(self, trainer: TrainerSettings, *, epoch: int) -> int | None:
        """The step that training is expected to end with, unless patience ends it, given the batches of an epoch."""
        limits = [trainer.max_steps, self.expected_steps(trainer)]
        if trainer.max_epochs is not None:
            limits.append(trainer.max_epochs * math.ceil(epoch / trainer.accumulate))
        return min((limit for limit in limits if limit is not None), default=None)

    def judge_by(self, metric: str) -> None:
        """Judges by this figure from now on; if it was another one before, patience starts over."""
        best = (self.best_scores or {}).get(metric)
        if best != self.best_score:
            self.best_score, self.waited = best, 0

    def reason_to_stop(self, trainer: TrainerSettings, *, epochs: int, late: bool) -> str | None:
        """Which limit of the trainer has been reached after this many epochs, or None."""
        if trainer.max_steps is not None and self.step >= trainer.max_steps:
            return "max_steps"
        if trainer.max_epochs is not None and epochs >= trainer.max_epochs:
            return "max_epochs"
        if trainer.patience is not None and self.waited >= trainer.patience:
            return "patience"
        return "max_minutes" if late else None

    def fraction_done(self, trainer: TrainerSettings, *, epoch: int) -> float:
        """How much of the training is over, given the number of batches in an epoch."""
        fractions = [0.0]
        if trainer.max_steps is not None:
            fractions.append(self.step / trainer.max_steps)
        if trainer.max_epochs is not None:
            fractions.append(self.batches / (epoch * trainer.max_epochs))
        if trainer.max_minutes is not None:
            fractions.append(self.seconds / (60.0 * trainer.max_minutes))
        return min(1.0, max(fractions))


def describe_end(reason: str, trainer: TrainerSettings) -> str:
    """The setting that ended a training, as its user wrote it: `max_steps=300`."""
    limit = f"{reason}={getattr(trainer, reason)}"
    if reason != "patience":
        return limit
    return f"{limit}: no better {trainer.metric} in {trainer.patience} validation{'s' * (trainer.patience != 1)}"


def describe_going_on(
    reason: str, trainer: TrainerSettings, position: Position, output: Path, *, epoch: int | None = None
) -> list[str]:
    """The command that continues beyond the limit that ended a training, and what may have ended it too early.

    Args:
        reason: that limit.
        trainer: all limits.
        position: where the training ended.
        output: its folder.
        epoch: how many batches a pass over the data has; another limit that would end it again is raised as well.
    """
    enough = 2 * max(getattr(trainer, reason), position.step if reason == "max_steps" else 0)
    command = f"saccade train --resume {shlex.quote(str(output))} --trainer.{reason} {enough}"
    if epoch is not None:
        steps = math.ceil(epoch / trainer.accumulate)
        if reason == "max_steps" and trainer.max_epochs is not None and trainer.max_epochs * steps < enough:
            command += f" --trainer.max_epochs {math.ceil(enough / steps)}"
        if reason == "max_epochs" and trainer.max_steps is not None and trainer.max_steps < enough * steps:
            command += f" --trainer.max_steps {enough * steps}"
    lines = []
    if reason == "max_minutes" and position.step < FEW_STEPS:
        lines.append(
            f"{trainer.max_minutes:g} minutes allowed only {position.step} step{'s' * (position.step != 1)}, so the "
            "model has hardly learned anything. Give it more minutes, or train a smaller model: one with smaller "
            "dimensions, or a configuration whose name ends in -small."
        )
    if reason != "patience":
        return [*lines, f"To continue beyond this limit: {command}"]
    last, best = (scores or {} for scores in (position.scores, position.best_scores))
    if trainer.metric != "loss" and last.get("loss", 0.0) < best.get("loss", 0.0):
        lines.append(f"The validation loss was still falling: {best['loss']:.4g}, now {last['loss']:.4g}.")
        command += " --trainer.metric loss"
    return [*lines, f"To continue: {command}"]


def duration(seconds: float) -> str:
    """`1:02:03` or `2:03`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
