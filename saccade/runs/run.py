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

import copy
import os
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from saccade import gpt2
from saccade.artifacts import check_header, load_weights, read_header, shapes_of
from saccade.configuration import read_config
from saccade.data.cell import Cell
from saccade.data.corpus import Corpus
from saccade.data.errors import LEAVE_OUT, BadRow, DataError
from saccade.data.examples import Examples, read_rows
from saccade.data.readers.memory import Rows
from saccade.evaluation import Figure, LengthBin, Table, by_length
from saccade.interpretation.explorer import Item
from saccade.models.quantised import quantise_layers, quantised_in
from saccade.runs.folder import check_run, chosen_weights, verify_run
from saccade.runs.plan import Plan
from saccade.runs.reading import read_examples
from saccade.runs.summary import unread_columns
from saccade.runs.workers import Workers
from saccade.tasks import Answer, Example, LanguageModelling, Task
from saccade.tasks.noticing import never_seen
from saccade.tasks.vectors import vectors_of
from saccade.training import Result
from saccade.training.processes import check_device

ExampleSource = str | os.PathLike[str] | list[str] | Sequence[Example] | Sequence[Sequence[Any]]
"""Files, or examples in memory: dictionaries, or tuples in the order of the task's fields."""


OWN_OPTIONS = ("workers", "batch_size", "lm", "lm_weight")
"""Options of `Run.answer` that are not the task's."""


class Evaluation(NamedTuple):
    """The figures of a model on some examples."""

    figures: dict[str, Figure]
    examples: int
    seconds: float
    remarks: list[str]
    """What to know about the answers: how many were cut short, or inputs truncated."""
    skipped: int
    """How many bad rows were left out, if they may be."""
    by_length: list[LengthBin]
    """By the length of the input, if asked for."""
    varied: dict[str, dict[str, Figure]]
    """For each value of an option, such as `beam=5`, if asked for."""
    tables: Sequence[Table] = ()
    """Details that the task gives, such as a confusion matrix."""


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
        """Values in memory as examples, read as the task's fields read them; the first has the number `start`."""
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
            lm: a run of language modelling, which helps to choose among the texts that a search finds.
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
        """The answer to each example, which has been read already; for the arguments see `predict`."""
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
        """Which words of each input and a given answer belong together.

        Args:
            pairs: inputs and answers.
            reverse: a run of the other direction, to symmetrise with.
            options: those of the task's `align`.
        """
        other = None if reverse is None else (reverse.task, reverse.model)
        return self.task.align(self.model, pairs, reverse=other, **options)

    def explain(self, inputs: Sequence[Any], targets: Sequence[Any] | None = None, **options: Any) -> list[Item]:
        """What the model looks at, for `saccade.interpretation.explorer`: an item for each input.

        Args:
            inputs: as for `predict`.
            targets: what it is made to answer; by default what it answers.
            options: see the task's `explain_options`; and those of `predict`.
        """
        if isinstance(inputs, str) or isinstance(targets, str):
            raise TypeError("inputs and targets are lists: write explain([text]).")
        if targets is not None and len(targets) != len(inputs):
            raise ValueError(f"There are {len(inputs)} inputs and {len(targets)} targets: give as many of each.")
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
        """The same for examples that have been read already, perhaps with targets."""
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
            plot: a file for the task's picture of the answers, such as the reliability of their probabilities.
            metrics: the figures, if not those of the task.
            bootstrap: how often the examples are resampled for an interval of each figure.
            options: as those of `predict`.
        """
        task = copy.copy(self.task)
        if metrics is not None:
            task.choose_metrics(metrics)
        if plot is not None and not task.picture:
            raise ValueError(f"{type(task).__name__} has no picture of an evaluation.")
        options = {**options, **task.evaluate_options}
        for changes in ({}, *_variations(vary)):
            shared = {name: value for name, value in options.items() if name not in OWN_OPTIONS}
            task.options.of({**shared, **changes})
        needed = {role: field for role, field in task.scored.items() if role not in task.figure_columns}
        read = read_examples(corpus or self.plan.data, data, task, needed)
        examples = task.joined(read)
        if not examples:
            raise ValueError(f"There are no examples in {data!r:.80}.")
        started = time.monotonic()
        answers = self.answer(examples, **options)
        seconds = time.monotonic() - started

        def score(numbers: list[int]) -> dict[str, Figure]:
            return task.measure(self.model, [answers[n] for n in numbers], [examples[n] for n in numbers])

        bins = [] if by is None else by_length([task.length(example) for example in examples], score, width=by)
        varied = {
            ", ".join(f"{name}={value}" for name, value in changes.items()): task.measure(
                self.model, self.answer(examples, **{**options, **changes}), examples
            )
            for changes in _variations(vary)
        }
        remarks = task.remarks(answers)
        long = len(task.truncated(self.model, examples))
        if long:
            remarks.append(f"{long:,} of {len(examples):,} inputs were too long and were truncated.")
        strange = task.unknown(examples, answers)
        if strange:
            seen = never_seen(dict.fromkeys(part for parts in strange.values() for part in parts))
            remarks.append(f"{len(strange):,} of {len(examples):,} inputs have {seen}")
        if task.about_unread and read.unread():
            remarks.append(unread_columns(task, read.unread()))
        skipped = report_skipped(read)
        if plot is not None:
            task.draw(answers, examples, plot)
        figures, tables = task.measure(self.model, answers, examples), task.tables(answers, examples)
        known = {} if bootstrap is None else task.intervals(answers, examples, bootstrap)
        figures = {name: figure._replace(interval=known.get(name)) for name, figure in figures.items()}
        return Evaluation(figures, len(examples), seconds, remarks, skipped, bins, varied, tables)


def load(folder: str | os.PathLike[str], *, device: str | torch.device | None = None, trust: bool = False) -> Run:
    """The model of a run folder, ready to predict.

    Nothing in a run is a pickle, but its configuration may name any class by dotted path, and building the model runs
    that class. So classes that are not Saccade's are refused unless the caller trusts the author of the run.

    A training that was interrupted has no model yet: its best checkpoint is loaded, with a warning.

    Args:
        folder: what `train` made, or a GPT-2 that the `transformers` library saved.
        device: where the model goes; the CPU unless another one is named.
        trust: whether the run may use classes that are not Saccade's.
    """
    if gpt2.is_folder(folder):
        return _foreign(Path(folder), device)
    path = check_run(folder)
    if device is not None and torch.device(device).type in ("cuda", "mps"):
        check_device(str(device))
    weights = chosen_weights(path)
    verify_run(path)
    plan = Plan(read_config(path / "config.yaml"), trust=trust)
    plan.task.load(path / "task")
    with torch.device("meta"):
        outline = plan.build()
    found = {name: dtype for name, (_, dtype) in read_header(weights.file).items()}
    rounded = quantised_in(found, outline)
    check_header(weights.file, shapes_of(quantise_layers(outline, rounded)))  # before any such size is allocated
    model = quantise_layers(plan.build(), rounded)
    load_weights(model, weights.file)
    if weights.remark:
        warnings.warn(weights.remark, stacklevel=2)
    return Run(path, plan, model if device is None else model.to(device))


def _foreign(folder: Path, device: str | torch.device | None) -> Run:
    """The GPT-2 of a folder as a run of language modelling."""
    found = gpt2.load(folder)  # which checks everything
    plan = Plan(gpt2.settings_of(folder))
    assert isinstance(plan.task, LanguageModelling)
    plan.task.text.tokeniser, plan.task.text.fitted = found.tokeniser, True
    return Run(folder, plan, found.model if device is None else found.model.to(device))


def report_skipped(examples: Examples) -> int:
    """How many bad rows the last reading left out; which ones is printed to standard error."""
    skipped = examples.skipped
    if not skipped.count:
        return 0
    if int(os.environ.get("RANK", "0")) == 0:  # one of the processes that torchrun starts prints
        print(skipped.report(), file=sys.stderr)
    return skipped.count


def _variations(vary: Mapping[str, Sequence[Any]] | None) -> list[dict[str, Any]]:
    return [{name: value} for name, values in (vary or {}).items() for value in values]
