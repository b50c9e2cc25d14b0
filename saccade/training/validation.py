"""Validation: the loss and the figures of a model on examples that it does not learn from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext

import torch
from torch import Tensor, nn

from saccade.tasks import Example, Loss, Task
from saccade.training.averaging import Average
from saccade.training.carrying import Carrying
from saccade.training.interruption import Interruption
from saccade.training.processes import Processes
from saccade.training.randomness import undisturbed
from saccade.training.settings import TrainerSettings
from saccade.training.stream import Stream, rows


class Objective(nn.Module):
    """The loss as a module, so that gradients are synchronised whichever parts of the model the task calls."""

    def __init__(self, task: Task, model: nn.Module, bf16: bool) -> None:
        super().__init__()
        self.model = model
        self._task = task
        self._bf16 = bf16

    def forward(self, batch: dict[str, Tensor], device: str) -> Loss:
        with torch.autocast(device, dtype=torch.bfloat16) if self._bf16 else nullcontext():
            return self._task.loss(self.model, batch)


class Validation:
    """Scores a model on validation examples, without changing anything that training depends on.

    Args:
        trainer: how many examples to predict, with which options, and which figure decides.
        task: of the model.
        objective: the loss of the model.
        examples: not encoded; at least one. Those that training would leave out, which may be longer than the model can
            read, do not count in the loss; predictions truncate them.
        processes: share the loss; the first one predicts.
        interruption: may stop a validation at any point, by `Aborted`.
        average: if given, scored in place of the model's weights, as soon as there is one.
    """

    def __init__(
        self,
        trainer: TrainerSettings,
        *,
        task: Task,
        objective: Objective,
        examples: Sequence[Example],
        processes: Processes,
        interruption: Interruption,
        average: Average | None,
    ) -> None:
        self.trainer = trainer
        self.task = task
        self.objective = objective
        self.processes = processes
        self.interruption = interruption
        self.average = average
        several = [task.rows(example) for example in examples]
        kept = [rows for rows in several if all(task.left_out(row) is None for row in rows)]
        self.encoded = task.in_order([row for rows in kept or several for row in rows], trainer.batch_tokens)
        self.count = len(examples)
        self.left_out = len(several) - len(kept or several)
        asked = trainer.validate_examples
        self.predicted = [examples[i] for i in range(len(examples) if asked is None else min(len(examples), asked))]

    @torch.no_grad()
    def scores(self) -> dict[str, float]:
        """The loss over all examples, and the task's figures."""
        model = self.objective.model
        averaged = nullcontext() if self.average is None else self.average.in_place(model)
        was_training = model.training
        try:
            with undisturbed(), averaged, self.processes.whole(self.objective), self.interruption.abortable():
                model.eval()
                scores = {"loss": self._loss()}
                if self.predicted:
                    options = self.trainer.validate_options
                    scores |= self.processes.from_main(lambda: self.task.evaluate(model, self.predicted, **options))
                return scores
        finally:
            model.train(was_training)

    def better(self, scores: Mapping[str, float], best: Mapping[str, float] | None) -> bool:
        """Whether the monitored figure beats the best so far. NaN never counts as an improvement.

        The loss breaks ties, such as an exact match of 0 % early on.
        """
        metric = self.trainer.metric
        score, record = scores[metric], (best or {}).get(metric)
        if math.isnan(score):
            return False
        if best is None or record is None:
            return True
        if score == record:
            return scores["loss"] < best.get("loss", math.inf)
        return score > record if self.task.metrics.get(metric, False) else score < record

    def as_loss(self, scores: Mapping[str, float]) -> float:
        """The monitored figure, with its sign changed if higher is better."""
        metric = self.trainer.metric
        return -scores[metric] if self.task.metrics.get(metric, False) else scores[metric]

    def describe(self) -> str:
        """How the figures were computed: the search, how many examples, and the search of an evaluation."""
        part = "" if len(self.predicted) in (0, self.count) else f"{len(self.predicted):,} of "
        examples = f"{part}{self.count:,} example{'s' * (self.count != 1)}"
        if self.left_out:
            examples += f", the loss without the {self.left_out:,} that training would leave out"
        search, usual = (self.task.options.of(o).describe() for o in (self.trainer.validate_options, {}))
        if not self.predicted or not search:
            return examples
        return f"{search}, {examples}" + ("" if search == usual else f"; `saccade evaluate` uses {usual}")

    def _loss(self) -> float:
        sums = torch.zeros(2, device=self.processes.device, dtype=self.processes.wide)
        stream = Stream.of(self.encoded, task=self.task, trainer=self.trainer, processes=self.processes, shuffle=False)
        carrying = Carrying(self.encoded, self.processes)
        while not stream.at_epoch_end:
            for indices in stream.take(1)[1]:
                if len(indices):
                    batch = self.processes.to_device(self.task.collate(rows(self.encoded, indices)))
                    loss = self.objective(carrying.given(batch, indices), self.processes.device.type)
                    carrying.keep(loss, indices)
                    sums += torch.stack([v.to(sums) for v in loss[:2]])
        total, count = self.processes.total(sums)
        return total / max(count, 1.0)
