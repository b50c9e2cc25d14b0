"""A run: a folder with everything about one trained model, made by `train` (in `run_training.py`) and read by `load`.

| file | content |
| --- | --- |
| `config.yaml` | the configuration, every default included |
| `task/` | what was learnt from the data before training: tokenisers |
| `model.safetensors` | the weights |
| `provenance.json` | what it learnt from, and the commands that trained it |
| `metrics.jsonl` | loss and figures of every step and validation |
| `checkpoints/` | what `resume` needs |
| `README.md` | the model card |
| `checksums.json` | the sums of what `load` reads, once the training has ended |
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from saccade.artifacts import load_weights
from saccade.configuration import read_config
from saccade.data.corpus import Corpus
from saccade.evaluation import Figure, LengthBin
from saccade.interpretation.explorer import Item
from saccade.run_folder import check_run, verify_run
from saccade.runs.plan import Plan
from saccade.tasks import Example, Prediction, Task
from saccade.tasks.explaining import explain_texts
from saccade.tasks.forced_alignment import Aligned, align_pairs
from saccade.training import Result
from saccade.workers import Workers

Examples = str | os.PathLike[str] | list[str] | Sequence[Example] | Sequence[Sequence[Any]]
"""Files, or examples in memory: dictionaries, or tuples in the order of the task's columns."""


class Evaluation(NamedTuple):
    """The figures of a model on some examples."""

    figures: dict[str, Figure]
    examples: int
    seconds: float
    unfinished: int
    """How many predictions were cut at the most tokens that were allowed."""
    unread: int
    """How many sources were longer than the model reads, and were read to there."""
    skipped: int
    """How many bad rows the files had, if such rows are skipped."""
    by_length: list[LengthBin]
    """By the number of source tokens, if asked for."""
    by_beam: dict[int, dict[str, Figure]]
    """By the size of the beam, if several were asked for."""


class Run:
    """A trained model with its task.

    Args:
        folder: where it stands.
        plan: how it was trained.
        model: in evaluation mode.
        result: how the training ended, if it ended just now.
    """

    def __init__(self, folder: Path, plan: Plan, model: nn.Module, result: Result | None = None) -> None:
        self.folder = folder
        self.plan = plan
        self.task: Task = plan.task
        self.model = model.eval()
        self.result = result

    def __repr__(self) -> str:
        return f"<Run of {type(self.model).__name__} in {self.folder}>"

    def predict(self, inputs: Sequence[Any], *, workers: int = 1, **options: Any) -> list[Prediction]:
        """One prediction for each input; options are the task's, such as `beam=5, nbest=3`.

        With several `workers`, as many processes of one thread share the work (see `saccade.workers.Workers`).
        """
        if isinstance(inputs, str):
            raise TypeError(f"predict takes a list of inputs: write predict([{inputs!r}]).")
        for number, left in self.task.unread(self.model, inputs).items():
            warnings.warn(f"Input {number}, counted from 0, has {left}.", stacklevel=2)
        return self._predict(inputs, workers=workers, **options)

    def _predict(self, inputs: Sequence[Any], *, workers: int = 1, **options: Any) -> list[Prediction]:
        if workers != 1:
            with Workers(self.task, self.model, workers) as several:
                return several.predict(list(inputs), **options)
        return self.task.predict(self.model, list(inputs), **options)

    def align(self, pairs: Sequence[tuple[str, str]], *, reverse: Run | None = None, **options: Any) -> list[Aligned]:
        """The word alignment of each pair of texts, by forced decoding.

        Args:
            pairs: source and target texts.
            reverse: a run of the other direction, to symmetrise with.
            options: see `saccade.tasks.forced_alignment.align_pairs`: reader, extract, sink, method, subwords, ...
        """
        other = None if reverse is None else (reverse.task, reverse.model)
        return align_pairs(self.task, self.model, pairs, reverse=other, **options)

    def explain(self, inputs: Sequence[str], targets: Sequence[str] | None = None, **options: Any) -> list[Item]:
        """What the model looks at while it writes, for `saccade.interpretation.explorer`: an item for each input.

        Args:
            inputs: source texts.
            targets: what it is made to write; by default what it writes.
            options: see `saccade.tasks.explaining.explain_texts`: gold, reader, keep, faithfulness, name; and those of
                `predict`.
        """
        return explain_texts(self.task, self.model, inputs, targets, **options)

    def evaluate(
        self,
        data: Examples,
        *,
        by_length: int | None = None,
        beams: Sequence[int] = (),
        corpus: Corpus | None = None,
        **options: Any,
    ) -> Evaluation:
        """The figures of the model on examples whose targets are known.

        Args:
            data: files, or examples in memory.
            by_length: the figures also for each so many source tokens.
            beams: the figures also for these beam sizes.
            corpus: how the files are read, if not as the training files were.
            options: as those of `predict`.
        """
        read = read_data(data, corpus or self.plan.data, self.task.scored or self.task.columns)
        examples = list(read)
        if not examples:
            raise ValueError(f"There are no examples in {data!r}.")
        started = time.monotonic()
        predictions = self._predict(examples, **options)
        seconds = time.monotonic() - started
        bins: list[LengthBin] = []
        if by_length is not None:
            bins = self.task.score_by_length(predictions, examples, width=by_length)  # type: ignore[attr-defined]
        sizes = {size: self._predict(examples, **{**options, "beam": size}) for size in beams}
        return Evaluation(
            self.task.score(predictions, examples),
            len(examples),
            seconds,
            sum(not prediction.finished for prediction in predictions),
            len(self.task.unread(self.model, examples)),
            report_skipped(read),
            bins,
            {size: self.task.score(predicted, examples) for size, predicted in sizes.items()},
        )


def load(folder: str | os.PathLike[str], *, device: str | torch.device | None = None, trust: bool = False) -> Run:
    """The model of a run folder, ready to predict.

    Nothing in a run is a pickle, but its configuration may name any class by dotted path, and to build the model runs
    that class. So classes that are not Saccade's are refused unless the caller trusts whoever made the run.

    Args:
        folder: what `train` made.
        device: where the model goes; the CPU unless another one is named.
        trust: whether the run may use classes that are not Saccade's.
    """
    path = check_run(folder)
    if not (path / "model.safetensors").is_file():
        raise FileNotFoundError(f"{path} has no model yet: its training has not ended. Resume it.")
    verify_run(path)
    plan = Plan(read_config(path / "config.yaml"), trust=trust)
    plan.task.load(path / "task")
    model = plan.build()
    load_weights(model, path / "model.safetensors")
    return Run(path, plan, model if device is None else model.to(device))


def is_main() -> bool:
    """Of the processes that torchrun starts, one writes."""
    return int(os.environ.get("RANK", "0")) == 0


def read_data(data: Any, corpus: Corpus, roles: Sequence[str]) -> Any:
    """Examples that can be read again and again: a stream over files, or a list."""
    return corpus.read(data, roles) if are_files(data) else corpus.take(data, roles)


def report_skipped(examples: Any) -> int:
    """How many bad rows the last reading left out; which ones goes to standard error."""
    skipped = getattr(examples, "skipped", None)  # a list has none
    if skipped is None or not skipped.count:
        return 0
    if is_main():
        print(skipped.report(), file=sys.stderr)
    return int(skipped.count)


def are_files(data: Any) -> bool:
    """Whether these are files, and not examples in memory."""
    if isinstance(data, str | os.PathLike):
        return True
    return isinstance(data, Sequence) and len(data) > 0 and isinstance(data[0], str | os.PathLike)
