"""What parts of the training loop need to know of its settings."""

from __future__ import annotations

from typing import Any, Protocol

from saccade.training.schedules import Schedule


class Settings(Protocol):
    """The arguments of a `Trainer`, for the parts below it."""

    max_steps: int | None
    max_epochs: int | None
    max_minutes: float | None
    batch_tokens: int
    patience: int | None
    metric: str
    seed: int
    schedule: Schedule
    average: str
    average_last: int
    validate_examples: int | None
    validate_options: dict[str, Any]
