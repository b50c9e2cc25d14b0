"""The training loop: steps, validations and checkpoints, in an order that survives a crash at any point."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from saccade.artifacts import restore_folders, save_weights, set_weights, weights_of, whole
from saccade.kernels.allocation import keep_freed_memory
from saccade.kernels.private_torch import scale_all
from saccade.tasks import Example, Row, Task
from saccade.training.averaging import MovingAverage
from saccade.training.batching import Batching
from saccade.training.budget import BUDGET_STEPS, describe_budget
from saccade.training.checkpoints import Checkpoint, Checkpoints
from saccade.training.choosing import choose_weights
from saccade.training.interruption import Aborted, Interrupted, Interruption
from saccade.training.metrics import MetricsLog
from saccade.training.position import Position, Result, describe_end, describe_going_on
from saccade.training.processes import Processes
from saccade.training.progress import StepReport, describe_scores, make_progress
from saccade.training.randomness import random_state, seed_everything, set_random_state
from saccade.training.settings import Settings
from saccade.training.state import load_optimiser, read_state
from saccade.training.stream import Stream
from saccade.training.validation import Objective, Validation

SHORTEST_EPOCH = 100
"""Shorter epochs are validated together: little changes in a step or two."""


class Loop:
    """One training in progress."""

    def __init__(
        self,
        trainer: Settings,
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
        self.train = train
        self.output = output
        self.position = Position()
        self.processes = Processes(
            device=trainer.device, trackers=trainer.trackers, output=output, sharded=trainer.sharding == "fsdp"
        )
        self.stream = Stream.of(train, sizes, task=task, trainer=trainer, processes=self.processes, shuffle=True)
        self.batching = Batching(task, train, seed=trainer.seed, process=self.processes.index)
        objective = Objective(task, model.to(self.processes.device), trainer.precision == "bf16")
        self.shared = self.processes.share(objective)
        self.optimiser = trainer.optimiser.create(
            model, learning_rate=trainer.learning_rate, weight_decay=trainer.weight_decay
        )
        self.average = MovingAverage(model, trainer.average_decay) if trainer.average == "ema" else None
        self.checkpoints = Checkpoints(output / "checkpoints")
        self.log = MetricsLog(output / "metrics.jsonl")
        self.interruption = Interruption()
        self.validation = (
            Validation(
                trainer,
                task=task,
                objective=objective,
                examples=valid,
                processes=self.processes,
                interruption=self.interruption,
                average=self.average,
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
            self.batching.close()
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
        if self.position.pending:
            self._validate()
            self._save()

    def _restore(self, checkpoint: Checkpoint) -> None:
        schedule = self.trainer.schedule
        state = read_state(checkpoint, optimiser=self.optimiser, schedule=schedule, stream=self.stream)
        self.position = state.position
        self.position.judge_by(self.trainer.metric)
        set_weights(self.model, checkpoint.weights)
        load_optimiser(self.optimiser, checkpoint.optimiser)
        if self.average is not None:
            self.average.set(checkpoint.average or checkpoint.weights)  # a run that had no average before
        schedule.load_state_dict(state.schedule)
        self.stream.load_state_dict(state.stream)
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
        epoch, batches = self.stream.take(trainer.accumulate)
        place = position.batches
        self.batching.prefetch(place + len(batches), self.stream.peek(trainer.accumulate))
        self.model.train()
        losses = []
        for i, indices in enumerate(batches):
            with self.processes.unsynchronised(self.shared) if i < len(batches) - 1 else nullcontext():
                losses.append(self._backward(place + i, indices))
        wishes = torch.tensor([self.interruption.requested, self._is_late()], dtype=losses[0][1].dtype)
        sums = torch.stack([values for _, values in losses]).sum(dim=0)
        *totals, interrupted, late = self.processes.total(torch.cat([sums, wishes.to(sums.device)]))
        mean = {
            name: value / max(totals[1], 1.0)
            for name, value in zip(losses[0][0], totals, strict=True)
            if name != "tokens"
        }
        objective = mean["objective"]
        mean.setdefault("loss", objective)
        if mean["loss"] == objective:
            del mean["objective"]  # it differs where targets are smoothed or penalties added
        self._interrupted, self._out_of_time = interrupted > 0, late > 0  # what all processes agree on
        if not math.isfinite(objective):
            raise FloatingPointError(
                f"The loss is {objective} at step {position.step + 1}: try a lower learning_rate, a warmup or a "
                f"smaller clip_norm. Earlier checkpoints are in {self.checkpoints.folder}."
            )
        norm = self._update(position.step + 1, totals[1])
        position.step += 1
        position.batches += len(batches)
        self._report(epoch, mean, norm, int(totals[1]), time.monotonic() - started)

    def _backward(self, place: int, indices: Sequence[int]) -> tuple[list[str], Tensor]:
        """The gradient of one batch's summed loss; the names and values of what is summed over batches."""
        batch = self.processes.to_device(self.batching.batch(place, indices))
        loss = self.shared(batch, self.processes.device.type)
        # A process whose share of a small batch is empty still takes part in sharing gradients, with zeros.
        share = 1.0 if len(indices) else 0.0
        (loss.total * share).backward()
        values = [v.detach().to(loss.total.device, self.processes.wide) for v in (*loss[:2], *loss.parts.values())]
        return ["objective", "tokens", *loss.parts], torch.stack(values) * share

    def _update(self, step: int, count: float) -> float | None:
        """One step of the optimiser with the gradient of the sum over the global batch divided by its count."""
        trainer = self.trainer
        parameters = [p for group in self.optimiser.param_groups for p in group["params"] if p.grad is not None]
        # Sharing has made the gradients means over the processes.
        scale_all([p.grad for p in parameters if p.grad is not None], self.processes.count / max(count, 1.0))
        norm = None
        if trainer.clip_norm is not None:
            norm = float(whole(nn.utils.clip_grad_norm_(parameters, trainer.clip_norm)))
        last = self.position.last_step(trainer, epoch=len(self.stream))
        for group in self.optimiser.param_groups:
            group["lr"] = trainer.learning_rate * trainer.schedule.factor(step, last)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        if self.average is not None:
            self.average.update(self.model, step)
        return norm

    def _report(self, epoch: int, mean: dict[str, float], norm: float | None, tokens: int, seconds: float) -> None:
        trainer, position = self.trainer, self.position
        position.seconds = time.monotonic() - self._clock
        rate = self.optimiser.param_groups[0]["lr"]
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
        if position.step == BUDGET_STEPS or (trainer.schedule.ends and position.step % BUDGET_STEPS == 0):
            position.step_seconds = self.processes.from_main(lambda: position.seconds / position.step)
        if position.step == BUDGET_STEPS:
            for line in describe_budget(trainer, position, epoch=len(self.stream)):
                self.progress.say(line)
        self.progress.step(StepReport(position.step, epoch, mean["loss"], rate, tokens, seconds, done, left))

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
        """Scores the model; if a signal comes meanwhile, the validation is left to the resumed training."""
        position, validation = self.position, self.validation
        assert validation is not None
        try:
            scores = validation.scores()
        except Aborted:
            position.pending = True
            self._leave()
        position.seconds = time.monotonic() - self._clock
        position.scores, position.validated, position.pending = scores, position.step, False
        improved = validation.better(scores, position.best_scores)
        if improved:
            position.best_step, position.best_scores = position.step, scores
            position.best_score = scores[self.trainer.metric]
        position.waited = 0 if improved else position.waited + 1
        self.trainer.schedule.observe(improved)
        if self.processes.main:
            record = {"split": "valid", "step": position.step, **scores}
            self.log.write({**record, "seconds": round(position.seconds, 3)})
        self.processes.track({f"valid/{name}": value for name, value in scores.items()}, position.step)
        self.progress.validation(position.step, scores, improved)

    def _save(self) -> None:
        self.position.seconds = time.monotonic() - self._clock
        random = self.processes.gather(random_state())
        weights = self.processes.gathered(weights_of(self.model))
        average = None if self.average is None else self.processes.gathered(self.average.weights)
        optimiser = self.processes.gathered(self.optimiser.state_dict())
        if self.processes.main:
            self.log.sync()
            self.checkpoints.save(
                Checkpoint(
                    step=self.position.step,
                    weights=weights,
                    average=average,
                    optimiser=optimiser,
                    state={
                        "position": asdict(self.position),
                        "schedule": self.trainer.schedule.state_dict(),
                        "stream": self.stream.state_dict(),
                        "random": random,
                    },
                )
            )
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
        """Leaves the best weights in the model and in the run folder, and says how training ended."""
        trainer, position, say = self.trainer, self.position, self.progress.say
        chosen = choose_weights(
            self.model,
            trainer=trainer,
            position=position,
            checkpoints=self.checkpoints,
            average=self.average,
            validation=self.validation,
            processes=self.processes,
            say=say,
        )
        self.model.eval()
        self.processes.release(self.shared)
        if self.processes.main:
            save_weights(self.model, self.output / "model.safetensors")
        done = "Nothing was left to do" if idle else "Done"
        say(
            f"{done} after step {position.step} ({describe_end(reason, trainer)}); "
            f"the weights are the {chosen.name} of step {chosen.step}."
        )
        if self.validation is not None and chosen.scores:
            say(f"Their validation ({self.validation.describe()}): {describe_scores(chosen.scores)}")
        for line in describe_going_on(reason, trainer, position, self.output):
            say(line)
        self.processes.wait()
        return Result(position.step, reason, chosen.name, chosen.step, chosen.scores, position.seconds)

    def _is_late(self) -> bool:
        minutes = self.trainer.max_minutes
        return minutes is not None and time.monotonic() - self._clock >= 60.0 * minutes
