"""The training loop: steps, validations and checkpoints in an order that any crash can be resumed from."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from saccade.artifacts import (
    ArtifactError,
    pack_tensors,
    restore_folders,
    save_weights,
    set_weights,
    verify,
    weights_of,
    write_folder,
)
from saccade.kernels.allocation import keep_freed_memory
from saccade.tasks.base import Encoded, Example, Loss, Task
from saccade.training.averaging import MovingAverage, mean_weights
from saccade.training.checkpoints import Checkpoint, Checkpoints
from saccade.training.interruption import Aborted, Interrupted, Interruption
from saccade.training.metrics import MetricsLog
from saccade.training.processes import Processes
from saccade.training.progress import StepReport, make_progress
from saccade.training.randomness import random_state, seed_everything, set_random_state, undisturbed
from saccade.training.stream import Stream, rows

if TYPE_CHECKING:
    from saccade.training.trainer import Trainer


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
    """How long it took, validations and what came before a resumption included."""


@dataclass
class Position:
    """Where a training is, as far as plain numbers say it."""

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
    """Whether a validation is due at this step that an interruption prevented."""


class Objective(nn.Module):
    """The loss as a module, so that gradients are shared whatever parts of the model the task calls."""

    def __init__(self, task: Task, model: nn.Module, bf16: bool) -> None:
        super().__init__()
        self.model = model
        self._task = task
        self._bf16 = bf16

    def forward(self, batch: dict[str, Tensor], device: str) -> Loss:
        with torch.autocast(device, dtype=torch.bfloat16) if self._bf16 else nullcontext():
            return self._task.loss(self.model, batch)


class Loop:
    """One training in progress."""

    def __init__(
        self,
        trainer: Trainer,
        *,
        task: Task,
        model: nn.Module,
        train: Sequence[Encoded],
        valid: Sequence[Example] | None,
        sizes: ArrayLike | None,
        output: Path,
        started: Callable[[], None] | None = None,
    ) -> None:
        self.trainer = trainer
        self.task = task
        self.model = model
        self.train = train
        self.valid = valid or None
        self.output = output
        self.position = Position()
        self.processes = Processes(cpu=trainer.device == "cpu", trackers=trainer.trackers, output=output)
        self.stream = self._stream(train, sizes, shuffle=True)
        self.valid_encoded = [task.encode(example) for example in valid or ()]
        objective = Objective(task, model.to(self.processes.device), trainer.precision == "bf16")
        self.objective = objective
        self.shared = self.processes.share(objective)
        self.optimiser = trainer.optimiser.create(
            model, learning_rate=trainer.learning_rate, weight_decay=trainer.weight_decay
        )
        self.average = MovingAverage(model, trainer.average_decay) if trainer.average == "ema" else None
        self.checkpoints = Checkpoints(output / "checkpoints")
        self.log = MetricsLog(output / "metrics.jsonl")
        self.interruption = Interruption()
        self._interrupted = self._out_of_time = False
        self._saved: int | None = None
        self._started = started
        self._clock = time.monotonic()

    def run(self, resume: bool) -> Result:
        """Trains until a limit is reached, and chooses the weights."""
        keep_freed_memory()
        self.progress = make_progress(every=self.trainer.log_every, main=self.processes.main)
        try:
            with self.interruption:
                self._begin(resume)
                while (reason := self._reason_to_stop()) is None:
                    self._step()
                    self._after_step()
                self._complete()
                return self._choose(reason)
        finally:
            self.progress.close()
            self.log.close()
            self.processes.end_tracking()

    def _begin(self, resume: bool) -> None:
        seed_everything(self.trainer.seed + self.processes.index)
        if resume and self.processes.main:
            restore_folders(self.checkpoints.folder)  # by one process, before all of them read
        self.processes.wait()
        checkpoint = self.checkpoints.latest() if resume else None
        self.processes.wait()
        if checkpoint is not None:
            self._restore(checkpoint)
            self.progress.say(f"Resuming after step {checkpoint.step} of {self.output}.")
        elif resume:
            self.progress.say(f"{self.output} holds no checkpoint yet: training from the beginning.")
        if self.processes.main:
            self.output.mkdir(parents=True, exist_ok=True)
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
        state = dict(checkpoint.state)
        self.position = Position(**state["position"])
        set_weights(self.model, checkpoint.weights)
        self.optimiser.load_state_dict(checkpoint.optimiser)
        if self.average is not None:
            set_average = checkpoint.average or checkpoint.weights  # a run that had no average before
            self.average.weights = {n: t.to(self.processes.device) for n, t in set_average.items()}
        self.trainer.schedule.load_state_dict(state["schedule"])
        self.stream.load_state_dict(state["stream"])
        if self.processes.index < len(state["random"]):
            set_random_state(state["random"][self.processes.index])
        else:  # more processes than before
            seed_everything(hash((self.trainer.seed, self.processes.index, checkpoint.step)))
        self._saved = checkpoint.step

    def _reason_to_stop(self) -> str | None:
        trainer, position = self.trainer, self.position
        if trainer.max_steps is not None and position.step >= trainer.max_steps:
            return "max_steps"
        if trainer.max_epochs is not None and self.stream.epochs_done >= trainer.max_epochs:
            return "max_epochs"
        if trainer.patience is not None and position.waited >= trainer.patience:
            return "patience"
        return "max_minutes" if self._out_of_time else None

    def _step(self) -> None:
        trainer, position = self.trainer, self.position
        started = time.monotonic()
        epoch, batches = self.stream.take(trainer.accumulate)
        self.model.train()
        losses = []
        for i, indices in enumerate(batches):
            with self.processes.apart(self.shared) if i < len(batches) - 1 else nullcontext():
                losses.append(self._backward(indices))
        wishes = torch.tensor([self.interruption.requested, self._is_late()], dtype=losses[0][1].dtype)
        sums = torch.stack([values for _, values in losses]).sum(dim=0)
        *totals, interrupted, late = self.processes.total(torch.cat([sums, wishes.to(sums.device)]))
        mean = {
            name: value / max(totals[1], 1.0)
            for name, value in zip(losses[0][0], totals, strict=True)
            if name != "tokens"
        }
        self._interrupted, self._out_of_time = interrupted > 0, late > 0  # what all processes agree on
        if not math.isfinite(mean["loss"]):
            raise FloatingPointError(
                f"The loss is {mean['loss']} at step {position.step + 1}: try a lower learning_rate, a warmup or a "
                f"smaller clip_norm. Checkpoints until then are in {self.checkpoints.folder}."
            )
        norm = self._update(position.step + 1, totals[1])
        position.step += 1
        position.batches += len(batches)
        self._report(epoch, mean, norm, int(totals[1]), time.monotonic() - started)

    def _backward(self, indices: Sequence[int]) -> tuple[list[str], Tensor]:
        """The gradient of one batch's summed loss; the names and values of what is summed up over batches."""
        # A process whose share of a small batch is empty still takes part in sharing gradients, with zeros.
        encoded = rows(self.train, indices if len(indices) else [0])
        loss = self.shared(self.processes.to_device(self.task.collate(encoded)), self.processes.device.type)
        share = 1.0 if len(indices) else 0.0
        (loss.total * share).backward()
        values = [v.detach().to(loss.total.device, self.processes.wide) for v in (*loss[:2], *loss.parts.values())]
        return ["loss", "tokens", *loss.parts], torch.stack(values) * share

    def _update(self, step: int, count: float) -> float | None:
        """One step of the optimiser with the gradient of the sum over the global batch divided by its count."""
        trainer = self.trainer
        parameters = [p for group in self.optimiser.param_groups for p in group["params"] if p.grad is not None]
        # Sharing has made the gradients means over the processes.
        torch._foreach_mul_([p.grad for p in parameters], self.processes.count / max(count, 1.0))
        norm = None
        if trainer.clip_norm is not None:
            norm = float(nn.utils.clip_grad_norm_(parameters, trainer.clip_norm))
        for group in self.optimiser.param_groups:
            group["lr"] = trainer.learning_rate * trainer.schedule.factor(step, trainer.max_steps)
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
        done = self._fraction_done()
        left = position.seconds * (1.0 - done) / done if done else None
        self.progress.step(StepReport(position.step, epoch, mean["loss"], rate, tokens, seconds, done, left))

    def _fraction_done(self) -> float:
        trainer, position = self.trainer, self.position
        fractions = [0.0]
        if trainer.max_steps is not None:
            fractions.append(position.step / trainer.max_steps)
        if trainer.max_epochs is not None:
            fractions.append(position.batches / (len(self.stream) * trainer.max_epochs))
        if trainer.max_minutes is not None:
            fractions.append(position.seconds / (60.0 * trainer.max_minutes))
        return min(1.0, max(fractions))

    def _after_step(self) -> None:
        trainer, position = self.trainer, self.position
        every = trainer.validate_every
        milestone = position.step % every == 0 if every else self.stream.at_epoch_end
        position.pending = milestone and self.valid is not None
        if self._interrupted:
            self._leave()
        if milestone or (trainer.checkpoint_every and position.step % trainer.checkpoint_every == 0):
            self._save()  # before the validation: if that fails, it is all that a resumption has to repeat
        if position.pending:
            self._validate()
            self._save()

    def _leave(self) -> None:
        self._save()
        self.progress.say(f"Interrupted after step {self.position.step}; {self.output} can be resumed from there.")
        raise Interrupted(self.position.step)

    def _validate(self) -> None:
        """Scores the model; if a signal comes meanwhile, the validation is left for the resumption."""
        position = self.position
        try:
            scores = self._scores()
        except Aborted:
            position.pending = True
            self._leave()
        position.seconds = time.monotonic() - self._clock
        position.scores, position.validated, position.pending = scores, position.step, False
        score = scores[self.trainer.metric]
        improved = self._better(score, position.best_score)
        if improved:
            position.best_step, position.best_score, position.best_scores = position.step, score, scores
        position.waited = 0 if improved else position.waited + 1
        self.trainer.schedule.observe(improved)
        if self.processes.main:
            record = {"split": "valid", "step": position.step, **scores}
            self.log.write({**record, "seconds": round(position.seconds, 3)})
        self.processes.track({f"valid/{name}": value for name, value in scores.items()}, position.step)
        self.progress.validation(position.step, scores, improved)

    def _better(self, score: float, best: float | None) -> bool:
        if math.isnan(score):
            return False
        higher = self.task.metrics.get(self.trainer.metric, False)
        return best is None or (score > best if higher else score < best)

    @torch.no_grad()
    def _scores(self) -> dict[str, float]:
        """The loss over all validation data, and the task's figures; nothing that training depends on changes."""
        trainer = self.trainer
        averaged = nullcontext() if self.average is None else self.average.in_place(self.model)
        was_training = self.model.training
        try:
            with undisturbed(), averaged, self.interruption.abortable():
                self.model.eval()
                scores = {"loss": self._validation_loss()}
                assert self.valid is not None
                asked = trainer.validate_examples
                if asked != 0:
                    some = [self.valid[i] for i in range(min(len(self.valid), asked or len(self.valid)))]
                    options = trainer.validate_options
                    scores |= self.processes.from_main(lambda: self.task.evaluate(self.model, some, **options))
                return scores
        finally:
            self.model.train(was_training)

    def _validation_loss(self) -> float:
        sums = torch.zeros(2, device=self.processes.device, dtype=self.processes.wide)
        stream = self._stream(self.valid_encoded, None, shuffle=False)
        while not stream.at_epoch_end:
            for indices in stream.take(1)[1]:
                if len(indices):
                    batch = self.task.collate(rows(self.valid_encoded, indices))
                    loss = self.objective(self.processes.to_device(batch), self.processes.device.type)
                    sums += torch.stack([v.to(sums) for v in loss[:2]])
        total, count = self.processes.total(sums)
        return total / max(count, 1.0)

    def _stream(self, encoded: Sequence[Encoded], sizes: ArrayLike | None, shuffle: bool) -> Stream:
        return Stream(
            [self.task.size(encoded[i]) for i in range(len(encoded))] if sizes is None else sizes,
            budget=self.trainer.batch_tokens,
            seed=self.trainer.seed,
            shuffle=shuffle,
            process=self.processes.index,
            processes=self.processes.count,
        )

    def _save(self) -> None:
        self.position.seconds = time.monotonic() - self._clock
        random = self.processes.gather(random_state())
        if self.processes.main:
            self.log.sync()
            self.checkpoints.save(
                Checkpoint(
                    step=self.position.step,
                    weights=weights_of(self.model),
                    average=None if self.average is None else self.average.weights,
                    optimiser=self.optimiser.state_dict(),
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
        if self.valid is not None and self.position.validated != self.position.step:
            self._validate()
            self._save()

    def _choose(self, reason: str) -> Result:
        """Leaves the weights that a user wants in the model and in the run folder."""
        position = self.position
        chosen, step, scores = "last", position.step, position.scores or {}
        if self.average is not None:
            chosen = "averaged"
            set_weights(self.model, self.average.weights)
        if position.best_step is not None and position.best_step != position.step:
            try:
                set_weights(self.model, self.checkpoints.load(position.best_step).chosen)
                step, scores = position.best_step, position.best_scores or {}
            except ArtifactError as error:
                self.progress.say(f"{error} The weights of the last step are used.")
        if position.best_step == step:
            chosen = "best"
        if self.trainer.average == "last":
            averaged = self._averaged(scores)
            if averaged is not None:
                chosen, step, scores = "averaged", position.step, averaged
        self.model.eval()
        if self.processes.main:
            save_weights(self.model, self.output / "model.safetensors")
        self.progress.say(f"Done after step {position.step} ({reason}); the weights are the {chosen} of step {step}.")
        self.processes.wait()
        return Result(position.step, reason, chosen, step, scores, position.seconds)

    def _averaged(self, scores: dict[str, float]) -> dict[str, float] | None:
        """Puts the mean of the last checkpoints into the model, unless it does worse; its figures."""
        own = {name: tensor.clone() for name, tensor in weights_of(self.model).items()}
        steps = [step for step in self.checkpoints.steps()[-self.trainer.average_last :] if self._is_whole(step)]
        if not steps:
            return None
        set_weights(self.model, mean_weights(self.checkpoints.load(step).weights for step in steps))
        try:
            averaged = {} if self.valid is None else self._scores()
        except Aborted:
            raise Interrupted(self.position.step) from None
        if self.processes.main:
            files = {"model.safetensors": pack_tensors(weights_of(self.model))}
            write_folder(self.checkpoints.folder / "averaged", files)  # type: ignore[arg-type]
        if self.valid is None or self._better(averaged[self.trainer.metric], scores.get(self.trainer.metric)):
            return averaged
        set_weights(self.model, own)
        return None

    def _is_whole(self, step: int) -> bool:
        try:
            verify(self.checkpoints.path(step))
        except ArtifactError as error:
            warnings.warn(f"{error} The average is that of the other checkpoints.", stacklevel=2)
            return False
        return True

    def _is_late(self) -> bool:
        minutes = self.trainer.max_minutes
        return minutes is not None and time.monotonic() - self._clock >= 60.0 * minutes
