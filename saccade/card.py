"""The model card: what a model is, what it learnt from, how good it is, and how to use it."""

from __future__ import annotations

import importlib.metadata
import platform
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torch import nn

import saccade
from saccade.configuration.parts import name_of

if TYPE_CHECKING:
    from saccade.configuration import Plan
    from saccade.training import Result

LIBRARIES = ("torch", "tokenizers", "accelerate", "datasets", "sacrebleu", "Babel")


class Provenance(NamedTuple):
    """What a model learnt from."""

    train: int
    """How many examples it was trained on."""
    long: int
    """How many were left out because they were too long."""
    skipped: int
    """How many rows were bad."""
    valid: int = 0
    sources: dict[str, str] = {}  # noqa: RUF012 (never written to)


def model_card(name: str, plan: Plan, model: nn.Module, result: Result, data: Provenance) -> str:
    """The card as Markdown."""
    parameters = sum(parameter.numel() for parameter in model.parameters())
    left_out = [f"{data.long:,} too long" if data.long else "", f"{data.skipped:,} bad" if data.skipped else ""]
    lines = [
        f"# {name}",
        "",
        f"{type(model).__name__} (`{name_of(type(model))}`) for {name_of(type(plan.task))}, "
        f"{parameters:,} parameters, made with Saccade {saccade.__version__}.",
        "",
        "## Use",
        "",
        "```",
        "saccade predict FOLDER < source.txt > target.txt",
        "saccade evaluate FOLDER --data test.tsv",
        "```",
        "",
        "## Data",
        "",
        "| | source | examples |",
        "| --- | --- | --- |",
        f"| training | `{data.sources.get('train', '')}` | {data.train:,} |",
        f"| validation | `{data.sources.get('valid', '')}` | {data.valid:,} |",
        "",
        *([f"Left out: {', '.join(filter(None, left_out))}.", ""] if any(left_out) else []),
        "## Figures",
        "",
    ]
    if result.scores:
        lines += ["| validation | |", "| --- | --- |"]
        lines += [f"| {metric} | {value:.4g} |" for metric, value in result.scores.items()]
    else:
        lines += ["There was no validation data."]
    lines += [
        "",
        f"After {result.step:,} steps and {result.seconds / 60:.1f} minutes (ended by {result.reason}); "
        f"the weights are the {result.chosen} of step {result.chosen_step:,}.",
        "",
        "## How it was made",
        "",
        "```",
        command(),
        "```",
        "",
        f"Seed {plan.trainer.seed}; every other argument is in `config.yaml`.",
        "",
        "| | version |",
        "| --- | --- |",
        f"| Python | {platform.python_version()} |",
        f"| saccade | {saccade.__version__} |",
        *(f"| {library} | {version} |" for library, version in versions().items()),
        "",
    ]
    return "\n".join(lines)


def command() -> str:
    """How this process was started, as far as that is a command of Saccade's."""
    program = Path(sys.argv[0])
    if program.name in ("saccade", "__main__.py"):
        return shlex.join(["saccade", *sys.argv[1:]])
    return "saccade.train(...) in Python"


def versions() -> dict[str, str]:
    """Of the libraries that are installed."""
    found = {}
    for library in LIBRARIES:
        try:
            found[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
