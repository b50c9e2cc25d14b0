"""The training loop: steps, validations and checkpoints, in an order that survives a crash at any point."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike
from torch import nn

from saccade.artifacts import restore_folders, save_weights
from saccade.kernels.allocation import keep_freed_memory
from saccade.kernels.finite import NotFiniteError
from saccade.tasks import Example, Row, Task
from saccade.training.budget import BUDGET_STEPS, describe_budget, describe_epochs, speed_is_known
from saccade.training.checkpoints import Checkpoint, Checkpoints
from saccade.training.choosing import choose_weights
from saccade.training.interruption import Aborted, Interrupted, Interruption
from saccade.training.learner import Gradient, Learner
from saccade.training.metrics import MetricsLog
from saccade.training.position import Position, Result, describe_end, describe_going_on
from saccade.training.processes import Processes
from saccade.training.progress import StepReport, describe_scores, make_progress
from saccade.training.randomness import random_state, seed_everything, set_random_state
from saccade.training.settings import TrainerSettings
from saccade.training.state import read_state
from saccade.training.validation import Validation

SHORTEST_EPOCH = 100
"""Shorter epochs are validated together, since little changes in a step or two."""


class Loop:
    """One training in progress."""

    def __init__(
        self,
        trainer: TrainerSettings,
        *,
        task: Task,
        model: nn.Module,
        train: Sequence[Row],
        valid: Sequence[Example] | None,
        sizes: ArrayLike | None,
        output: Path,
        started: Callable[[], None] | None = None,
    ) -> None:
        self.trainer = trainer
        self.task = task
        self.model = model
        self.output = output
        self.position = Position()
        self.processes = Processes(
            device=trainer.device, trackers=trainer.trackers, output=output, sharded=trainer.sharding == "fsdp"
        )
        self.learner = Learner(trainer, task=task, model=model, train=train, sizes=sizes, processes=self.processes)
        self.stream = self.learner.stream
        self.checkpoints = Checkpoints(output / "checkpoints")
        self.log = MetricsLog(output / "metrics.jsonl")
        self.interruption = Interruption()
        self.validation = (
            Validation(
                trainer,
                task=task,
                objective=self.learner.objective,
                examples=valid,
                processes=self.processes,
                interruption=self.interruption,
                average=self.learner.average,
            )
            if valid
            else None
        )
        self._interrupted = self._out_of_time = False
        self._saved: int | None = None
        self._started = started
        self._clock = time.monotonic()

    def run(self, resume: bool) -> Result:
        """Trains until a limit is reached, and chooses the weights."""
        keep_freed_memory()
        self.progress = make_progress(every=self.trainer.log_every, unit=self.task.unit, main=self.processes.main)
        try:
            with self.interruption:
                self._begin(resume)
                begun = self.position.step
                while (reason := self._reason_to_stop()) is None:
                    self._step()
                    self._after_step()
                self._complete()
                return self._end(reason, idle=resume and begun == self.position.step)
        finally:
            self.progress.close()
            self.learner.close()
            self.log.close()
            self.processes.end_tracking()

    def _begin(self, resume: bool) -> None:
        seed_everything(self.trainer.seed + self.processes.index)
        if resume and self.processes.main:
            restore_folders(self.checkpoints.folder)  # by one process, before all of them read
        self.processes.wait()
        checkpoint = self.checkpoints.latest(self._restore) if resume else None
        self.processes.wait()
        if checkpoint is not None:
            self.progress.say(f"Resuming after step {checkpoint.step} of {self.output}.")
        elif resume:
            self.progress.say(f"{self.output} has no checkpoint yet: starting from the beginning.")
        if self.processes.main:
            self.checkpoints.drop_after(self.position.step)
            self.log.begin(self.position.step, self.position.validated)
            if self._started is not None:
                self._started()
        self.processes.wait()
        self.processes.begin_tracking()
        self._clock = time.monotonic() - self.position.seconds
        self._out_of_time = self._is_late()
        for line in describe_epochs(self.trainer, epoch=len(self.stream)):
            self.progress.say(line)
        if self.position.pending:
            self._validate()
            self._save()

    def _restore(self, checkpoint: Checkpoint) -> None:
        learner = self.learner
        state = read_state(
            checkpoint, optimiser=learner.optimiser, schedule=self.trainer.schedule, stream=learner.stream
        )
        self.position = state.position
        self.position.judge_by(self.trainer.metric)
        learner.restore(checkpoint, state)
        if self.processes.index < len(state.random):
            set_random_state(state.random[self.processes.index])
        else:  # more processes than before
            seed_everything(hash((self.trainer.seed, self.processes.index, checkpoint.step)))
        self._saved = checkpoint.step

    def _reason_to_stop(self) -> str | None:
        return self.position.reason_to_stop(self.trainer, epochs=self.stream.epochs_done, late=self._out_of_time)

    def _step(self) -> None:
        trainer, position = self.trainer, self.position
        started = time.monotonic()
        try:
            found = self.learner.gradient(position.batches, lambda: [self.interruption.requested, self._is_late()])
        except NotFiniteError as error:
            raise self._diverged(str(error).rstrip("."), position.step + 1) from error
        self._interrupted, self._out_of_time = found.wishes
        if not math.isfinite(found.objective):
            raise self._diverged(f"The loss is {found.objective}", position.step + 1)
        last = position.last_step(trainer, epoch=len(self.stream))
        rate = trainer.learning_rate * trainer.schedule.factor(position.step + 1, last)
        norm = self.learner.update(position.step + 1, count=found.items, rate=rate)
        position.step += 1
        position.batches += found.batches
        self._report(found, norm, rate, time.monotonic() - started)

    def _diverged(self, problem: str, step: int) -> FloatingPointError:
        """The error of a training whose numbers have become too large."""
        fix = "look for numbers that are too large in the data and the model, since nothing has been learned yet"
        if step > 1:
            where = f"Earlier checkpoints are in {self.checkpoints.folder}"
            fix = f"try a lower learning_rate, a warmup or a smaller clip_norm. {where}"
        return FloatingPointError(f"{problem} at step {step}: {fix}.")

    def _report(self, found: Gradient, norm: float | None, rate: float, seconds: float) -> None:
        trainer, position = self.trainer, self.position
        epoch, mean, tokens = found.epoch, found.mean, int(found.items)
        position.seconds = time.monotonic() - self._clock
        if self.processes.main:
            record: dict[str, Any] = {"split": "train", "step": position.step, "epoch": epoch, **mean}
            record |= {"tokens": tokens, "learning_rate": rate}
            record |= {} if norm is None else {"gradient_norm": norm}
            self.log.write({**record, "seconds": round(position.seconds, 3)})
        if position.step % trainer.log_every == 0:
            self.processes.track({f"train/{k}": v for k, v in mean.items()} | {"learning_rate": rate}, position.step)
        done = position.fraction_done(trainer, epoch=len(self.stream))
        left = position.seconds * (1.0 - done) / done if done else None
        # Later, a schedule that ends follows the clock; other schedules know their warm-up and must not jump.
        first = position.step_seconds is None and position.step <= BUDGET_STEPS
        known = first and self.processes.from_main(lambda: speed_is_known(trainer, position))
        if known or (trainer.schedule.ends and position.step % BUDGET_STEPS == 0):
            position.step_seconds = self.processes.from_main(lambda: position.seconds / position.step)
        if known:
            for line in describe_budget(trainer, position, epoch=len(self.stream)):
                self.progress.say(line)
        self.progress.step(StepReport(position.step, epoch + 1, mean["loss"], rate, tokens, seconds, done, left))

    def _after_step(self) -> None:
        trainer, position = self.trainer, self.position
        every = trainer.validate_every
        long_enough = position.step - position.validated >= SHORTEST_EPOCH
        milestone = position.step % every == 0 if every else self.stream.at_epoch_end and long_enough
        position.pending = milestone and self.validation is not None
        if self._interrupted:
            self._leave()
        if milestone or (trainer.checkpoint_every and position.step % trainer.checkpoint_every == 0):
            self._save()  # before the validation: if that fails, resuming repeats nothing else
        if position.pending:
            self._validate()
            self._save()

    def _leave(self) -> None:
        self._save()
        again = f"saccade train --resume {shlex.quote(str(self.output))}"
        self.progress.say(f"Interrupted after step {self.position.step}; to continue from there: {again}")
        raise Interrupted(self.position.step)

    def _validate(self) -> None:
        """Scores the model; if a signal arrives in the meantime, the resumed training repeats the validation."""
        position, validation = self.position, self.validation
        assert validation is not None
        try:
            scores = validation.scores()
        except Aborted:
            position.pending = True
            self._leave()
        except NotFiniteError as error:
            raise self._diverged(str(error).rstrip("."), position.step) from error
        position.seconds = time.monotonic() - self._clock
        position.scores, position.validated, position.pending = scores, position.step, False
        improved = validation.better(scores, position.best_scores)
        tied = (position.best_scores or {}).get(self.trainer.metric) == scores[self.trainer.metric]
        if improved:
            position.best_step, position.best_scores = position.step, scores
            position.best_score = scores[self.trainer.metric]
        position.waited = 0 if improved else position.waited + 1
        self.trainer.schedule.observe(improved)
        if self.learner.average is not None:
            self.learner.average.observe(self.model, validation.as_loss(scores))
        if self.processes.main:
            record = {"split": "valid", "step": position.step, **scores}
            self.log.write({**record, "seconds": round(position.seconds, 3)})
        self.processes.track({f"valid/{name}": value for name, value in scores.items()}, position.step)
        self.progress.validation(position.step, scores, ("loss" if tied else self.trainer.metric) if improved else None)

    def _save(self) -> None:
        self.position.seconds = time.monotonic() - self._clock
        random = self.processes.gather(random_state())
        checkpoint = self.learner.checkpoint(self.position.step, {"position": asdict(self.position), "random": random})
        if self.processes.main:
            self.log.sync()
            self.checkpoints.save(checkpoint)
            best = self.position.best_step
            averaged = self.trainer.average_last if self.trainer.average == "last" else 0
            self.checkpoints.prune(keep=max(self.trainer.keep, averaged), pinned=() if best is None else (best,))
        self._saved = self.position.step
        self.processes.wait()

    def _complete(self) -> None:
        """The validation and the checkpoint of the last step."""
        if self._saved != self.position.step:
            self._save()
        if self.validation is not None and self.position.validated != self.position.step:
            self._validate()
            self._save()

    def _end(self, reason: str, *, idle: bool) -> Result:
        """Leaves the best weights in the model and in the run folder, and reports how training ended."""
        trainer, position, say = self.trainer, self.position, self.progress.say
        chosen = choose_weights(
            self.model,
            trainer=trainer,
            position=position,
            checkpoints=self.checkpoints,
            average=self.learner.average,
            validation=self.validation,
            processes=self.processes,
            say=say,
        )
        self.model.eval()
        self.processes.release(self.learner.shared)
        if self.processes.main:
            save_weights(self.model, self.output / "model.safetensors")
        done = "Nothing was left to do" if idle else "Done"
        say(
            f"{done} after step {position.step} ({describe_end(reason, trainer)}); "
            f"the weights are the {chosen.name} of step {chosen.step}."
        )
        if self.validation is not None and chosen.scores:
            say(f"Their validation ({self.validation.describe()}): {describe_scores(chosen.scores)}")
        for line in describe_going_on(reason, trainer, position, self.output, epoch=len(self.stream)):
            say(line)
        self.processes.wait()
        return Result(position.step, reason, chosen.name, chosen.step, chosen.scores, position.seconds)

    def _is_late(self) -> bool:
        minutes = self.trainer.max_minutes
        return minutes is not None and time.monotonic() - self._clock >= 60.0 * minutes
