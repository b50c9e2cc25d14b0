"""A run: a folder with everything about one trained model, made by `train` and read by `load`.

| file | content |
| --- | --- |
| `config.yaml` | the configuration, every default included |
| `task/` | what the fields learned from the data before training: vocabularies, label names |
| `model.safetensors` | the weights |
| `provenance.json` | what it was trained on, and the commands that trained it |
| `metrics.jsonl` | loss and figures of every step and validation |
| `checkpoints/` | what `resume` needs |
| `README.md` | the model card |
| `checksums.json` | the checksums of what `load` reads, once training has ended |
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from saccade.data.cell import Cell
from saccade.data.corpus import Corpus
from saccade.data.errors import LEAVE_OUT, BadRow, DataError
from saccade.data.examples import read_rows
from saccade.data.readers import absolute
from saccade.data.readers.memory import Rows
from saccade.interpretation.explorer import Item
from saccade.runs.evaluating import Evaluation, ExampleSource, evaluate
from saccade.runs.plan import Plan
from saccade.runs.workers import Workers
from saccade.tasks import Answer, Example, Task
from saccade.tasks.vectors import vectors_of
from saccade.training import Result


class Run:
    """A trained model with its task.

    Args:
        folder: where it is.
        plan: how it was trained.
        model: in evaluation mode.
        result: how training ended, if it has just ended.
    """

    def __init__(self, folder: Path, plan: Plan, model: nn.Module, result: Result | None = None) -> None:
        self.folder = folder
        self.plan = plan
        self.task: Task = plan.task
        self.model = model.eval()
        self.result = result

    def __repr__(self) -> str:
        return f"<Run of {type(self.model).__name__} in {self.folder}>"

    def read(self, inputs: Sequence[Any], *, start: int = 1) -> list[Example]:
        """Values in memory as examples, read by the task's fields; the first has the number `start`."""
        if isinstance(inputs, str | os.PathLike):
            raise TypeError(f"Inputs are a list: write [{inputs!r}].")
        rows = [self.task.example(value) for value in Rows(inputs).rows]
        return list(read_rows(rows, self.task.inputs, start=start))

    def predict(
        self,
        inputs: Sequence[Any],
        *,
        workers: int = 1,
        batch_size: int = 64,
        lm: Run | None = None,
        lm_weight: float = 0.3,
        **options: Any,
    ) -> list[Answer]:
        """The answer to each input.

        Args:
            inputs: values of the task's input (texts, paths of recordings, ...), or dictionaries where it has several.
            workers: how many processes of one thread share the work (see `Workers`).
            batch_size: how many inputs are answered together.
            lm: a run of language modelling that reranks the texts found by a search.
            lm_weight: how much it counts: see the task's `ranked_by`.
            options: the task's, such as `beam=5, nbest=3`.
        """
        self.task.options.of(options)
        examples = list(self.read(inputs))
        for number, left in self.task.truncated(self.model, examples).items():
            warnings.warn(f"Input {number}, counted from 0, has {left}.", stacklevel=2)
        return self.answer(examples, workers=workers, batch_size=batch_size, lm=lm, lm_weight=lm_weight, **options)

    def answer(
        self,
        examples: Sequence[Example],
        *,
        workers: int = 1,
        batch_size: int = 64,
        lm: Run | None = None,
        lm_weight: float = 0.3,
        **options: Any,
    ) -> list[Answer]:
        """The answer to each example that has already been read; for the arguments see `predict`."""
        if lm is not None:
            ranking = self.task.ranked_by(lm.task, lm.model, lm_weight)
            found = self.answer(examples, workers=workers, batch_size=batch_size, **ranking.asked(options))
            return ranking.ranked(found, options)
        if workers != 1:
            with Workers(self.task, self.model, workers) as several:
                return several.predict(examples, batch_size=batch_size, **options)
        return self.task.predict(self.model, examples, batch_size=batch_size, **options)

    def encode(self, inputs: Sequence[Any]) -> Tensor:
        """(inputs, dim): each input as one vector, from a model that makes such vectors (bert).

        Args:
            inputs: as for `predict`.
        """
        return vectors_of(self.task, self.model, self.read(inputs))

    def align(self, pairs: Sequence[tuple[Any, Any]], *, reverse: Run | None = None, **options: Any) -> list[Any]:
        """Aligns the words of each input with those of a given answer.

        Args:
            pairs: inputs and answers.
            reverse: a run of the other direction, to symmetrise with.
            options: those of the task's `align`.
        """
        other = None if reverse is None else (reverse.task, reverse.model)
        return self.task.align(self.model, pairs, reverse=other, **options)

    def explain(self, inputs: Sequence[Any], targets: Sequence[Any] | None = None, **options: Any) -> list[Item]:
        """What the model attends to: an item of `saccade.interpretation.explorer` for each input.

        Args:
            inputs: as for `predict`.
            targets: the answers to force; by default the model's own.
            options: see the task's `explain_options`; and those of `predict`.
        """
        if isinstance(inputs, str) or isinstance(targets, str):
            raise TypeError("inputs and targets are lists: write explain([text]).")
        if targets is not None and len(targets) != len(inputs):
            raise ValueError(f"Give a target for each input: inputs {len(inputs)}, targets {len(targets)}.")
        examples: list[Example] = list(self.read(inputs))
        if targets is not None:
            if not self.task.targets:
                raise ValueError(f"{type(self.task).__name__} has no targets: leave them out.")
            role = next(iter(self.task.targets))
            try:
                wanted = read_rows([{role: target} for target in targets], {role: self.task.targets[role]})
            except BadRow as bad:
                fix = bad.fix.replace(LEAVE_OUT, "").strip()
                raise DataError(f"The target of input {bad.line} (--target): {bad.problem}. {fix}".strip()) from None
            examples = [{**example, **target} for example, target in zip(examples, wanted, strict=True)]
            for number, example in enumerate(examples, start=1):
                self.task.check_example(example, Cell("the targets", number, role))
        return self.show(examples, **options)

    def show(self, examples: Sequence[Example], **options: Any) -> list[Item]:
        """The same for examples that have already been read, perhaps with targets."""
        for number, left in self.task.shown_in_part(self.model, examples).items():
            warnings.warn(f"Input {number + 1} has {left}.", stacklevel=3)
        return self.task.explain(self.model, examples, **options)

    def evaluate(
        self,
        data: ExampleSource,
        *,
        by: int | None = None,
        vary: Mapping[str, Sequence[Any]] | None = None,
        corpus: Corpus | None = None,
        plot: str | os.PathLike[str] | None = None,
        metrics: Sequence[str] | None = None,
        bootstrap: int | None = None,
        **options: Any,
    ) -> Evaluation:
        """The figures of the model on examples whose targets are known.

        Args:
            data: files, or examples in memory.
            by: also the figures by length of the input, in bins of this many positions.
            vary: also the figures for each of these values of an option, such as `{"beam": [1, 5, 10]}`.
            corpus: how the files are read, if not as the training files were.
            plot: a file for the task's plot of the answers, such as a reliability diagram.
            metrics: the figures, if not those of the task.
            bootstrap: how many times the examples are resampled for an interval around each figure.
            options: as those of `predict`.
        """
        found = evaluate(
            self.task,
            self.model,
            self.answer,
            corpus or self.plan.data,
            data,
            by=by,
            vary=vary,
            plot=plot,
            metrics=metrics,
            bootstrap=bootstrap,
            options=options,
        )
        trained = self.plan.data.train if self.plan.data.folds is None else None
        if trained is not None and isinstance(data, str | os.PathLike) and absolute(data) == trained:
            found.remarks.append("The model was trained on this file: the figures say little about new examples.")
        return found
