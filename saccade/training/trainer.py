"""The trainer: how long, how fast, how often; the loop itself is in `loop.py`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from numpy.typing import ArrayLike
from torch import nn

from saccade.registry import nearest, noting_arguments
from saccade.tasks import Example, Row, Task
from saccade.training.loop import Loop
from saccade.training.optimisers import Optimiser, optimisers
from saccade.training.position import Result
from saccade.training.processes import check_device, check_device_name
from saccade.training.schedules import Schedule, schedules


@noting_arguments
class Trainer:
    """Trains a model on a task; after a crash, it resumes exactly where it was.

    A step minimises the summed loss of a global batch divided by its number of items, however many processes and
    accumulated batches it is spread over. The run folder gets `metrics.jsonl`, `checkpoints/` and, at the end, the
    weights that did best in validation as `model.safetensors`.

    Args:
        max_steps: stop after this many updates.
        max_epochs: stop after this many passes over the data.
        max_minutes: stop after this many minutes, including those before it was resumed.
        batch_tokens: the token budget of a batch over all processes.
        accumulate: how many such batches make one update.
        learning_rate: the rate that the schedule scales.
        optimiser: adam, adamw, adadelta, adagrad, rmsprop, sgd, or an instance with its own options.
        schedule: constant, inverse_sqrt, cosine, linear, plateau, or an instance with its own options (noam).
        clip_norm: the maximum norm of the gradient; None does not clip.
        weight_decay: applied to matrices, not to vectors (biases, gains).
        precision: "bf16" computes in bfloat16 where it is safe; weights stay in float32.
        sharding: "fsdp" splits weights, gradients and the optimiser's state among the processes between steps;
            checkpoints are whole, so that any number of processes can resume them.
        validate_every: after how many steps to validate; None: after each epoch of 100 steps or more.
        validate_examples: how many validation examples to predict for the figures; None: all, 0: only the loss.
        validate_options: options of these predictions, such as the beam size.
        metric: the validation figure that decides which weights are best, and when to stop; the loss breaks ties.
        patience: stop after this many validations in a row without improvement.
        checkpoint_every: after how many steps to save, in addition to every validation.
        keep: how many of the last checkpoints to keep, in addition to the best.
        average: "ema" validates and keeps a moving average of the weights; "last" averages the last checkpoints at
            the end, and uses the average if it does better than the best; "triggered" validates and keeps the mean of
            all weights since progress ended, which with the optimiser sgd is NT-ASGD: see `TriggeredAverage`.
        average_last: how many checkpoints "last" averages.
        average_decay: how slowly "ema" moves.
        average_after: "triggered" begins at the first validation that is worse than the best of all but the last
            `average_after` validations.
        log_every: after how many steps to print a line (if there is no terminal) and inform trackers.
        trackers: tensorboard, wandb, mlflow and others that Accelerate knows; `metrics.jsonl` is always written.
        device: auto uses a GPU if there is one; or cpu, cuda, cuda:1, mps.
        seed: of everything random: the order of the data, dropout, sampling.
    """

    def __init__(
        self,
        *,
        max_steps: int | None = None,
        max_epochs: int | None = None,
        max_minutes: float | None = None,
        batch_tokens: int = 4096,
        accumulate: int = 1,
        learning_rate: float = 1e-3,
        optimiser: Optimiser | str = "adam",
        schedule: Schedule | str = "constant",
        clip_norm: float | None = 1.0,
        weight_decay: float = 0.0,
        precision: Literal["no", "bf16"] = "no",
        sharding: Literal["none", "fsdp"] = "none",
        validate_every: int | None = None,
        validate_examples: int | None = None,
        validate_options: dict[str, Any] | None = None,
        metric: str = "loss",
        patience: int | None = None,
        checkpoint_every: int | None = None,
        keep: int = 2,
        average: Literal["none", "last", "ema", "triggered"] = "none",
        average_last: int = 5,
        average_decay: float = 0.999,
        average_after: int = 5,
        log_every: int = 50,
        trackers: list[str] | None = None,
        device: str = "auto",
        seed: int = 1,
    ) -> None:
        self.max_steps = _positive("max_steps", max_steps)
        self.max_epochs = _positive("max_epochs", max_epochs)
        self.max_minutes = _positive("max_minutes", max_minutes)
        self.batch_tokens = _positive("batch_tokens", batch_tokens)
        self.accumulate = _positive("accumulate", accumulate)
        self.learning_rate = _positive("learning_rate", learning_rate)
        self.optimiser = optimisers.create(optimiser) if isinstance(optimiser, str) else optimiser
        self.schedule: Schedule = schedules.create(schedule) if isinstance(schedule, str) else schedule
        self.clip_norm = _positive("clip_norm", clip_norm)
        self.weight_decay = weight_decay
        self.precision = _one_of("precision", precision, ("no", "bf16"))
        self.sharding = _one_of("sharding", sharding, ("none", "fsdp"))
        self.validate_every = _positive("validate_every", validate_every)
        self.validate_examples = validate_examples
        self.validate_options = validate_options or {}
        self.metric = metric
        self.patience = _positive("patience", patience)
        self.checkpoint_every = _positive("checkpoint_every", checkpoint_every)
        self.keep = keep
        self.average = _one_of("average", average, ("none", "last", "ema", "triggered"))
        self.average_last = _positive("average_last", average_last)
        self.average_decay = average_decay
        self.average_after = _positive("average_after", average_after)
        self.log_every = _positive("log_every", log_every)
        self.trackers = trackers or []
        check_device_name(device)
        self.device = device
        self.seed = seed
        if max_steps is max_epochs is max_minutes is patience is None:
            raise ValueError("This training would never end: give max_steps, max_epochs, max_minutes or patience.")
        if not 0 <= seed < 2**32:
            raise ValueError(f"seed must be from 0 to {2**32 - 1}, got {seed}.")
        if keep < 2:
            raise ValueError(f"keep must be 2 or more, got {keep}: the last checkpoint may be damaged in a crash.")
        if validate_examples is not None and validate_examples < 0:
            raise ValueError(f"validate_examples must be 0 or more, got {validate_examples}.")
        if weight_decay < 0.0:
            raise ValueError(f"weight_decay must be 0 or more, got {weight_decay}.")
        if not 0.0 < average_decay < 1.0:
            raise ValueError(f"average_decay must be between 0 and 1, got {average_decay}.")
        if self.schedule.ends and self.schedule.steps is None and max_steps is max_epochs is max_minutes is None:
            raise ValueError(
                f"{type(self.schedule).__name__} must know its end: give it steps, or set max_steps, max_epochs or "
                "max_minutes."
            )

    def fit(
        self,
        *,
        task: Task,
        model: nn.Module,
        train: Sequence[Row],
        valid: Sequence[Example] | None = None,
        sizes: ArrayLike | None = None,
        output: str | os.PathLike[str],
        resume: bool = False,
        started: Callable[[], None] | None = None,
    ) -> Result:
        """Trains, and leaves the best weights in the model and in the run folder.

        SIGINT and SIGTERM save a checkpoint after the current step and raise `Interrupted`, exit code 130.

        Args:
            task: turns examples into a loss, and answers into figures.
            model: trained in place.
            train: encoded examples (`task.encode`): a list, or an Arrow dataset of any size.
            valid: examples that are not encoded, for the loss and the figures of validation.
            sizes: `task.size` of each training example, if known already.
            output: the run folder.
            resume: continue from the last checkpoint in the run folder, if there is one.
            started: called by the process that writes, when everything is in place, before the first step.
        """
        self.check(task, validating=bool(valid))
        check_folder(output, resume)
        loop = Loop(
            self,
            task=task,
            model=model,
            train=train,
            valid=valid,
            sizes=sizes,
            output=Path(output),
            started=started,
        )
        return loop.run(resume)

    def watching(self) -> list[str]:
        """The arguments that need validation data."""
        uses = {
            "patience": self.patience is not None,
            f"metric={self.metric!r}": self.metric != "loss",
            "average='triggered'": self.average == "triggered",
            "the plateau schedule": type(self.schedule).observe is not Schedule.observe,
        }
        return [name for name, used in uses.items() if used]

    def check(self, task: Task, *, validating: bool) -> None:
        """Raises if these arguments do not fit the task, the machine, or having no validation data."""
        check_device(self.device)
        if not validating:
            watching = self.watching()
            if watching:
                raise ValueError(
                    f"{', '.join(watching)} need{'s' * (len(watching) == 1)} validation data: set data.valid, or "
                    "data.held_out above 0."
                )
        if self.metric != "loss":
            if self.metric not in task.metrics:
                raise ValueError(
                    f"metric={self.metric!r} is not a figure of {type(task).__name__}."
                    f"{nearest(self.metric, ['loss', *task.metrics])}"
                )
            if self.validate_examples == 0:
                raise ValueError(f"metric={self.metric!r} needs predictions, but validate_examples is 0.")
        if validating and self.validate_examples != 0:
            task.options.of({**self.validate_options, **task.evaluate_options})


def check_folder(output: str | os.PathLike[str], resume: bool) -> None:
    """Raises if a training in this folder would overwrite another one, or cannot be resumed."""
    checkpoints = Path(output) / "checkpoints"
    trained = any(any(checkpoints.glob(name)) for name in ("step-*", ".step-*.previous"))
    finished = (Path(output) / "model.safetensors").exists()
    if not resume and trained:
        raise FileExistsError(
            f"{output} has checkpoints of a training: continue it with saccade train --resume {output}, or "
            "choose another folder."
        )
    if not resume and finished:
        raise FileExistsError(f"{output} contains a trained model: choose another folder.")
    if resume and finished and not trained:
        raise FileNotFoundError(
            f"{output} contains a trained model but no checkpoint to continue from: it would be trained again from "
            "the beginning and overwritten. Restore its checkpoints, or train in another folder."
        )


def _positive(name: str, value: Any) -> Any:
    if value is not None and not value > 0:
        raise ValueError(f"{name} must be positive, got {value}.")
    return value


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> Any:
    if value not in choices:
        raise ValueError(f"{name}={value!r} is unknown.{nearest(value, choices)}")
    return value
