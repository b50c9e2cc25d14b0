"""Which weights to keep after training: the best, an average, or the last."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

from torch import nn

from saccade.artifacts import (
    ArtifactError,
    check_header,
    pack_tensors,
    set_weights,
    shapes_of,
    verify,
    weights_of,
    write_folder,
)
from saccade.training.averaging import Average, mean_weights
from saccade.training.checkpoints import Checkpoints
from saccade.training.interruption import Aborted, Interrupted
from saccade.training.position import Position
from saccade.training.processes import Processes
from saccade.training.settings import TrainerSettings
from saccade.training.validation import Validation


class Choice(NamedTuple):
    """Weights that were chosen."""

    name: str
    """ "best", "averaged" or "last"."""
    step: int
    """The step after which the model had them."""
    scores: dict[str, float]
    """Their validation scores; empty without validation data."""


def choose_weights(
    model: nn.Module,
    *,
    trainer: TrainerSettings,
    position: Position,
    checkpoints: Checkpoints,
    average: Average | None,
    validation: Validation | None,
    processes: Processes,
    say: Callable[[str], None],
) -> Choice:
    """Puts the weights that a user wants into the model: the best, an average or the last.

    Args:
        model: after its last step.
        average: of its weights, if one was kept.
        validation: decides whether an average of checkpoints is better; without it, the average is always taken.
        processes: of which the first writes.
        say: prints a line for the user.
    """
    name, step, scores = "last", position.step, position.scores or {}
    if average is not None and average.weights is not None:
        name = "averaged"
        set_weights(model, average.weights)
    if position.best_step is not None and position.best_step != position.step:
        try:
            set_weights(model, checkpoints.load(position.best_step).chosen)
            step, scores = position.best_step, position.best_scores or {}
        except ArtifactError as error:
            say(f"{error} Using the weights of the last step instead.")
    if position.best_step == step:
        name = "best"
    if trainer.average == "last":
        steps = [step for step in checkpoints.steps()[-trainer.average_last :] if _is_usable(checkpoints, step, model)]
        averaged = _averaged(model, steps, scores, position.step, checkpoints, validation, processes)
        if averaged is not None:
            name, step, scores = "averaged", position.step, averaged
    return Choice(name, step, scores)


def _averaged(
    model: nn.Module,
    steps: list[int],
    best: dict[str, float],
    last: int,
    checkpoints: Checkpoints,
    validation: Validation | None,
    processes: Processes,
) -> dict[str, float] | None:
    """Puts the mean of some checkpoints into the model unless it scores worse than the best; returns its scores."""
    if not steps:
        return None
    own = {name: tensor.clone() for name, tensor in weights_of(model).items()}
    set_weights(model, mean_weights(checkpoints.load(step).weights for step in steps))
    try:
        averaged = {} if validation is None else validation.scores()
    except Aborted:
        raise Interrupted(last) from None
    weights = processes.gathered(weights_of(model))
    if processes.main:
        write_folder(checkpoints.folder / "averaged", {"model.safetensors": pack_tensors(weights)})
    if validation is None or validation.better(averaged, best):
        return averaged
    set_weights(model, own)
    return None


def _is_usable(checkpoints: Checkpoints, step: int, model: nn.Module) -> bool:
    try:
        verify(checkpoints.path(step), required=["model.safetensors"])
        check_header(checkpoints.path(step) / "model.safetensors", shapes_of(model))
    except ArtifactError as error:
        warnings.warn(f"{error} Averaging the other checkpoints.", stacklevel=2)
        return False
    return True
