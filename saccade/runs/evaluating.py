"""The figures of a model on examples whose targets are known."""

from __future__ import annotations

import copy
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from torch import nn

from saccade.data.corpus import Corpus
from saccade.data.examples import Examples
from saccade.evaluation import Figure, LengthBin, Table, by_length
from saccade.runs.reading import read_examples
from saccade.runs.summary import unread_columns
from saccade.tasks import Answer, Example, Task
from saccade.tasks.noticing import never_seen

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
    """Remarks about the answers: how many were cut short, or how many inputs were truncated."""
    skipped: int
    """How many bad rows were left out, if they may be."""
    by_length: list[LengthBin]
    """By the length of the input, if asked for."""
    varied: dict[str, dict[str, Figure]]
    """For each value of an option, such as `beam=5`, if asked for."""
    tables: Sequence[Table] = ()
    """Details that the task gives, such as a confusion matrix."""


def evaluate(
    task: Task,
    model: nn.Module,
    answer: Callable[..., list[Answer]],
    corpus: Corpus,
    data: ExampleSource,
    *,
    by: int | None,
    vary: Mapping[str, Sequence[Any]] | None,
    plot: str | os.PathLike[str] | None,
    metrics: Sequence[str] | None,
    bootstrap: int | None,
    options: Mapping[str, Any],
) -> Evaluation:
    """See `Run.evaluate`; `answer` gives the answers to examples."""
    task = copy.copy(task)
    if metrics is not None:
        task.choose_metrics(metrics)
    if plot is not None and not task.picture:
        raise ValueError(f"{type(task).__name__} has no picture of an evaluation.")
    options = {**options, **task.evaluate_options}
    for changes in ({}, *_variations(vary)):
        shared = {name: value for name, value in options.items() if name not in OWN_OPTIONS}
        task.options.of({**shared, **changes})
    needed = {role: field for role, field in task.scored.items() if role not in task.figure_columns}
    read = read_examples(corpus, data, task, needed)
    examples = task.joined(read)
    if not examples:
        raise ValueError(f"There are no examples in {data!r:.80}.")
    started = time.monotonic()
    answers = answer(examples, **options)
    seconds = time.monotonic() - started

    def score(numbers: list[int]) -> dict[str, Figure]:
        return task.measure(model, [answers[n] for n in numbers], [examples[n] for n in numbers])

    bins = [] if by is None else by_length([task.length(example) for example in examples], score, width=by)
    varied = {
        ", ".join(f"{name}={value}" for name, value in changes.items()): task.measure(
            model, answer(examples, **{**options, **changes}), examples
        )
        for changes in _variations(vary)
    }
    remarks = task.remarks(answers)
    inputs = f"{len(examples):,} input{'s' * (len(examples) != 1)}"
    long = len(task.truncated(model, examples))
    if long:
        was = "was" if long == 1 else "were"
        remarks.append(f"{long:,} of {inputs} {was} too long and {was} truncated.")
    strange = task.unknown(examples, answers)
    if strange:
        seen = never_seen(dict.fromkeys(part for parts in strange.values() for part in parts))
        remarks.append(f"{len(strange):,} of {inputs} {'has' if len(strange) == 1 else 'have'} {seen}")
    if task.about_unread and read.unread():
        remarks.append(unread_columns(task, read.unread()))
    skipped = report_skipped(read)
    if plot is not None:
        task.draw(answers, examples, plot)
    figures, tables = task.measure(model, answers, examples), task.tables(answers, examples)
    known = {} if bootstrap is None else task.intervals(answers, examples, bootstrap)
    figures = {name: figure._replace(interval=known.get(name)) for name, figure in figures.items()}
    return Evaluation(figures, len(examples), seconds, remarks, skipped, bins, varied, tables)


def report_skipped(examples: Examples) -> int:
    """How many bad rows the last reading skipped; they are listed on standard error."""
    skipped = examples.skipped
    if not skipped.count:
        return 0
    if int(os.environ.get("RANK", "0")) == 0:  # one of the processes that torchrun starts prints
        print(skipped.report(), file=sys.stderr)
    return skipped.count


def _variations(vary: Mapping[str, Sequence[Any]] | None) -> list[dict[str, Any]]:
    return [{name: value} for name, values in (vary or {}).items() for value in values]
