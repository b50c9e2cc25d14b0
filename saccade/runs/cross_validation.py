"""Cross-validation: one run for each fold, trained on the others and evaluated on that one."""

from __future__ import annotations

import json
import math
import os
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from torch import nn

import saccade
from saccade.artifacts import CHECKSUMS, read_json, write_file
from saccade.configuration import ConfigError, read_config
from saccade.data.spool import Spool
from saccade.evaluation import Figure, Table
from saccade.runs.folder import check_same, with_absolute_paths
from saccade.runs.loading import load
from saccade.runs.origin import find_origin
from saccade.runs.plan import PartOf, Plan
from saccade.runs.provenance import this_start
from saccade.runs.reading import read_examples
from saccade.runs.run import Run
from saccade.runs.splitting import Split, chosen, fields_of
from saccade.runs.stages import Stage, say
from saccade.runs.summary import described
from saccade.runs.training import planned, train
from saccade.tasks import Answer, Example, Task
from saccade.training import Trainer

FILE = "cross-validation.json"
OURS = re.compile(rf"fold-\d+|{re.escape(FILE)}|README\.md")


class Fold(NamedTuple):
    """One fold, and the figures on it of the run that did not see it."""

    name: str
    folder: Path
    """The folder of its run."""
    examples: int
    figures: dict[str, Figure]


class CrossValidation(NamedTuple):
    """The figures of a cross-validation."""

    folder: Path
    folds: list[Fold]
    mean: dict[str, float]
    """Over the folds."""
    deviation: dict[str, float]
    """The standard deviation over the folds, of a sample: divided by their number less one."""
    pooled: dict[str, Figure]
    """The figures of all answers together, each by the run that did not see the example."""
    tables: list[Table]
    """Details of the pooled answers, as an evaluation gives them."""


def cross_validate(
    config: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    *,
    folds: int | str,
    output: str | os.PathLike[str],
    task: PartOf[Task] | None = None,
    model: PartOf[nn.Module] | None = None,
    data: Any = None,
    trainer: PartOf[Trainer] | None = None,
    init_from: str | os.PathLike[str] | None = None,
    overrides: Mapping[str, Any] | None = None,
    trust: bool = True,
) -> CrossValidation:
    """For each fold, trains a model on the other folds and evaluates it on that one.

    The runs go to `fold-0`, `fold-1` and so on in the output folder. If it is called again with the same arguments,
    finished folds are kept and an interrupted one is resumed. Validation examples are held out of the training folds:
    the fold that a run is evaluated on plays no part in choosing its weights.

    Args:
        config: as for `train`, like all arguments that are not here.
        folds: the number of folds, which preserve label proportions and keep equal inputs together; or the name of the
            column with the fold of each example.
        output: the folder for the runs and the summary.
        task: as for `train`.
        model: as for `train`.
        data: as for `train`.
        trainer: as for `train`.
        init_from: as for `train`.
        overrides: as for `train`.
        trust: as for `train`.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigError(
            "Cross-validation runs in one process. To train a fold in several, give torchrun that fold alone: "
            "--data.folds 10 --data.fold 0"
        )
    folder = Path(output)
    parts = {"task": task, "model": model, "data": data, "trainer": trainer}
    split_by = {**(overrides or {}), "data.folds": folds}
    origin = None if init_from is None else find_origin(init_from)
    plan, held = planned(config, parts, split_by, trust, origin)
    if "train" not in held and plan.data.train is None:
        raise ConfigError("data.train is missing: say what to split into folds, for example --data.train reviews.csv")
    source = held.get("train", plan.data.train)
    _check_output(folder)
    done: list[Fold] = []
    answers: list[Answer] = []
    examples: list[Example] = []
    every = read_examples(plan.data, source, plan.task, fields_of(plan.task, plan.data))
    with Stage(f"Reading {described(source)}", every) as reading:
        spool = Spool(reading, folder)
    with spool:
        split = Split(spool, plan.task, plan.data)
        identity = split.identity()
        _check_data(folder, identity)
        _report(split)
        for number, name in enumerate(split.names):
            say(f"\nFold {name}, {number + 1} of {len(split.names)}:")
            wanted, _ = planned(config, parts, {**split_by, "data.fold": name}, trust, origin)
            run = _trained(wanted, held, folder / f"fold-{number}", init_from, trust)
            own = run.task.joined(chosen(spool, split.tested(name)))
            found = run.answer(own, **run.task.evaluate_options)
            figures = run.task.measure(run.model, found, own)
            done.append(Fold(name, run.folder, len(own), figures))
            answers += [replace(answer, attention=None, alternatives=[]) for answer in found]
            examples += own
            shown = ", ".join(f"{metric} {figure.value:.4g}" for metric, figure in figures.items())
            say(f"Fold {name}: {shown} on {len(own):,} examples")
            _save(folder, identity, done)
    together = run.task.pooled(answers, examples), run.task.tables(answers, examples)
    result = CrossValidation(folder, done, *_over_folds(done), *together)
    _save(folder, identity, done, result)
    write_file(folder / "README.md", _card(result, described(source)))
    return result


def _trained(plan: Plan, held: Mapping[str, Any], folder: Path, init_from: Any, trust: bool) -> Run:
    """The run of a fold: finished, resumed, or new."""
    begun = folder / "config.yaml"
    if not begun.is_file():
        return train(plan.plain, data=dict(held), output=folder, init_from=init_from, trust=trust)
    check_same(folder, Plan(with_absolute_paths(read_config(begun)), trust=trust).plain, plan.plain)
    if (folder / CHECKSUMS).is_file():  # written when training ends
        say(f"{folder} is finished.")
        return load(folder, trust=trust)
    return train(resume=folder, data=dict(held), trust=trust)


def _over_folds(folds: Sequence[Fold]) -> tuple[dict[str, float], dict[str, float]]:
    """Mean and standard deviation of each figure."""
    values = {name: [fold.figures[name].value for fold in folds] for name in folds[0].figures}
    deviation = {n: statistics.stdev(v) if not any(map(math.isnan, v)) else math.nan for n, v in values.items()}
    return {name: statistics.fmean(several) for name, several in values.items()}, deviation


def _check_output(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file; the output must be a folder.")
    names = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    foreign = [name for name in names if not OURS.fullmatch(name) and not name.startswith(".")]
    if foreign:
        listed = ", ".join(foreign[:5]) + (", ..." if len(foreign) > 5 else "")
        raise FileExistsError(f"{folder} contains more than a cross-validation ({listed}): choose another folder.")


def _check_data(folder: Path, identity: str) -> None:
    if (folder / FILE).is_file() and read_json(folder / FILE).get("data") != identity:
        raise ConfigError(
            f"{folder} contains the folds of other data: choose another folder, or restore the original data."
        )


def _report(split: Split) -> None:
    sizes = [int(split.tested(name).sum()) for name in split.names]
    say(f"{len(split):,} examples in {len(sizes)} folds of {min(sizes):,} to {max(sizes):,}.")
    if split.scattered():
        several = f"WARNING: {split.scattered():,} inputs occur in more than one fold"
        say(f"{several}, so runs are tested on inputs they have seen in training.")


def _save(folder: Path, identity: str, folds: Sequence[Fold], result: CrossValidation | None = None) -> None:
    """Writes what is known so far."""
    content: dict[str, Any] = {
        "data": identity,
        "folds": [
            {"fold": fold.name, "run": fold.folder.name, "examples": fold.examples, "figures": _plain(fold.figures)}
            for fold in folds
        ],
    }
    if result is not None:
        content |= {
            "mean": _finite(result.mean),
            "standard_deviation": _finite(result.deviation),
            "pooled": _plain(result.pooled),
            "signatures": {name: figure.signature for name, figure in result.pooled.items()},
            "tables": {table.name: table.as_json() for table in result.tables},
        }
    write_file(folder / FILE, json.dumps(content, ensure_ascii=False, indent=2) + "\n")


def _card(result: CrossValidation, source: str) -> str:
    """The summary as Markdown."""
    metrics = list(result.folds[0].figures)
    lines = [
        f"# {result.folder.name}",
        "",
        f"{len(result.folds)}-fold cross-validation on `{source}`, made with Saccade {saccade.__version__}: each run "
        "was trained on all folds but one, and evaluated on that one.",
        "",
        f"| fold | examples | {' | '.join(metrics)} |",
        f"| --- |{' ---: |' * (len(metrics) + 1)}",
    ]
    rows = [(fold.name, f"{fold.examples:,}", {n: f.value for n, f in fold.figures.items()}) for fold in result.folds]
    rows += [("mean", "", result.mean), ("standard deviation", "", result.deviation)]
    total = f"{sum(fold.examples for fold in result.folds):,}"
    rows += [("all examples together", total, {name: figure.value for name, figure in result.pooled.items()})]
    for name, count, values in rows:
        cells = [f"{values[metric]:.2f}" if metric in values else "" for metric in metrics]
        lines.append(f"| {name} | {count} | {' | '.join(cells)} |")
    lines += ["", *(f"- {name}: {figure.signature}" for name, figure in result.folds[0].figures.items())]
    for table in result.tables:
        lines += ["", "```", *table.lines(), "```"] if table.printed else []
    return "\n".join([*lines, "", "## How it was made", "", "```", this_start().command, "```", ""])


def _plain(figures: Mapping[str, Figure]) -> dict[str, float | None]:
    return _finite({name: figure.value for name, figure in figures.items()})


def _finite(values: Mapping[str, float]) -> dict[str, float | None]:
    """JSON has no word for NaN."""
    return {name: None if math.isnan(value) else value for name, value in values.items()}
