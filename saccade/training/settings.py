"""The settings that parts of the training loop need to know."""

from __future__ import annotations

from typing import Any, Protocol

from saccade.training.optimisers import Optimiser
from saccade.training.schedules import Schedule


class TrainerSettings(Protocol):
    """The arguments of a `Trainer`, for the parts below it."""

    max_steps: int | None
    max_epochs: int | None
    max_minutes: float | None
    batch_tokens: int
    accumulate: int
    learning_rate: float
    optimiser: Optimiser
    schedule: Schedule
    clip_norm: float | None
    weight_decay: float
    precision: str
    sharding: str
    validate_every: int | None
    validate_examples: int | None
    validate_options: dict[str, Any]
    metric: str
    patience: int | None
    checkpoint_every: int | None
    keep: int
    average: str
    average_last: int
    average_decay: float
    average_after: int
    log_every: int
    trackers: list[str]
    device: str
    seed: int
