"""One step of training: the gradient of a global batch, and the optimiser's update."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from saccade.artifacts import set_weights, weights_of, whole
from saccade.kernels.private_torch import scale_all
from saccade.tasks import Row, Task
from saccade.training.averaging import Average, MovingAverage, TriggeredAverage
from saccade.training.batching import Batching
from saccade.training.carrying import Carrying
from saccade.training.checkpoints import Checkpoint
from saccade.training.processes import Processes
from saccade.training.settings import TrainerSettings
from saccade.training.state import TrainingState, load_optimiser
from saccade.training.stream import Stream
from saccade.training.validation import Objective


class Gradient(NamedTuple):
    """The result of a global batch's backward passes; the gradients are in the parameters."""

    epoch: int
    batches: int
    """How many batches of each process it has."""

    items: float
    """How many items it has: the gradient is that of the sum over them."""

    objective: float
    """The mean of what is minimised."""

    mean: dict[str, float]
    """The means of what the task reports, `loss` among them."""

    wishes: list[bool]
    """Requests from any of the processes."""


class Learner:
    """A model with its optimiser and the stream of its training batches.

    Args:
        trainer: the settings.
        task: of the model.
        model: moved to the device of this process.
        train: encoded examples.
        sizes: `task.size` of each of them, if known.
        processes: share each global batch.
    """

    def __init__(
        self,
        trainer: TrainerSettings,
        *,
        task: Task,
        model: nn.Module,
        train: Sequence[Row],
        sizes: ArrayLike | None,
        processes: Processes,
    ) -> None:
        self.trainer, self.model, self.processes = trainer, model, processes
        train = task.in_order(train, trainer.batch_tokens)
        self.carrying = Carrying(train, processes)
        self.stream = Stream.of(train, sizes, task=task, trainer=trainer, processes=processes, shuffle=True)
        self.batching = Batching(task, train, seed=trainer.seed, process=processes.index)
        self.objective = Objective(task, model.to(processes.device), trainer.precision == "bf16")
        self.shared = processes.share(self.objective)
        self.optimiser = trainer.optimiser.create(
            model, learning_rate=trainer.learning_rate, weight_decay=trainer.weight_decay
        )
        self.average: Average | None = None
        if trainer.average == "ema":
            self.average = MovingAverage(model, trainer.average_decay)
        elif trainer.average == "triggered":
            self.average = TriggeredAverage(trainer.average_after, trainer.metric)

    def gradient(self, place: int, wishes: Callable[[], Sequence[bool]]) -> Gradient:
        """Computes the gradient of the next global batch.

        Args:
            place: how many batches came before, counted from the start of training.
            wishes: returns this process's requests after its backward passes, which are shared with all processes.
        """
        epoch, batches = self.stream.take(self.trainer.accumulate)
        self.batching.prefetch(place + len(batches), self.stream.peek(self.trainer.accumulate))
        self.model.train()
        losses = []
        for i, indices in enumerate(batches):
            with self.processes.unsynchronised(self.shared) if i < len(batches) - 1 else nullcontext():
                losses.append(self._backward(place + i, indices))
        sums = torch.stack([values for _, values in losses]).sum(dim=0)
        asked = torch.tensor(wishes(), dtype=sums.dtype, device=sums.device)
        totals = self.processes.total(torch.cat([sums, asked]))
        named = dict(zip(losses[0][0], totals, strict=False))
        count = named.pop("tokens")
        mean = {name: value / max(count, 1.0) for name, value in named.items()}
        objective = mean["objective"]
        if mean.setdefault("loss", objective) == objective:
            del mean["objective"]  # it differs where targets are smoothed or penalties added
        agreed = [value > 0 for value in totals[len(sums) :]]
        return Gradient(epoch, len(batches), count, objective, mean, agreed)

    def _backward(self, place: int, indices: Sequence[int]) -> tuple[list[str], Tensor]:
        """The gradient of one batch's summed loss; the names and values of what is summed over batches."""
        batch = self.processes.to_device(self.batching.batch(place, indices))
        loss = self.shared(self.carrying.given(batch, indices), self.processes.device.type)
        self.carrying.keep(loss, indices)
        # A process whose share of a small batch is empty still takes part in sharing gradients, with zeros.
        share = 1.0 if len(indices) else 0.0
        (loss.total * share).backward()
        values = [v.detach().to(loss.total.device, self.processes.wide) for v in (*loss[:2], *loss.parts.values())]
        return ["objective", "tokens", *loss.parts], torch.stack(values) * share

    def update(self, step: int, *, count: float, rate: float) -> float | None:
        """One step of the optimiser with the gradient divided by `count`; returns its norm if it is clipped."""
        parameters = [p for group in self.optimiser.param_groups for p in group["params"] if p.grad is not None]
        # Sharing has made the gradients means over the processes.
        scale_all([p.grad for p in parameters if p.grad is not None], self.processes.count / max(count, 1.0))
        norm = None
        if self.trainer.clip_norm is not None:
            norm = float(whole(nn.utils.clip_grad_norm_(parameters, self.trainer.clip_norm)))
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        if self.average is not None:
            self.average.update(self.model, step)
        return norm

    def checkpoint(self, step: int, state: dict[str, Any]) -> Checkpoint:
        """Everything that a resumed training needs, collected from all processes; `state` is what the loop adds."""
        averaged = None if self.average is None else self.average.weights
        more = {} if self.average is None else {"average": self.average.state_dict()}
        return Checkpoint(
            step=step,
            weights=self.processes.gathered(weights_of(self.model)),
            average=None if averaged is None else self.processes.gathered(averaged),
            optimiser=self.processes.gathered(self.optimiser.state_dict()),
            carried=self.carrying.state(),
            state={"schedule": self.trainer.schedule.state_dict(), "stream": self.stream.state_dict(), **more, **state},
        )

    def restore(self, checkpoint: Checkpoint, state: TrainingState) -> None:
        """Continues from a checkpoint, whose state has been read."""
        set_weights(self.model, checkpoint.weights)
        load_optimiser(self.optimiser, checkpoint.optimiser)
        if self.average is not None:
            self.average.restore(self.model, checkpoint.average, state.average)
        self.trainer.schedule.load_state_dict(state.schedule)
        self.stream.load_state_dict(state.stream)
        self.carrying.load(checkpoint.carried)

    def close(self) -> None:
        """Ends the threads that prepare batches."""
        self.batching.close()
