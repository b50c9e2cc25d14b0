"""The model card: what a model is, what it was trained on, how good it is, and how to use it."""

from __future__ import annotations

from torch import nn

import saccade
from saccade.configuration.classes import name_of
from saccade.runs.plan import Plan
from saccade.runs.provenance import Provenance, Start
from saccade.training import Result


def model_card(name: str, plan: Plan, model: nn.Module, result: Result, data: Provenance) -> str:
    """The card as Markdown."""
    parameters = sum(parameter.numel() for parameter in model.parameters())
    left_out = [f"{count:,} ({reason})" for reason, count in data.left_out.items()]
    left_out += [f"{data.skipped:,} bad rows"] if data.skipped else []
    truncated = [f"{count:,} ({reason})" for reason, count in data.truncated.items()]
    lines = [
        f"# {name}",
        "",
        f"{type(model).__name__} (`{name_of(type(model))}`) for {name_of(type(plan.task))}, "
        f"{parameters:,} parameters, made with Saccade {saccade.__version__}.",
        "",
        "## Use",
        "",
        "```",
        "saccade predict FOLDER INPUTS",
        "saccade evaluate FOLDER --data DATA",
        "saccade explain FOLDER INPUTS --output page.html",
        "```",
        "",
        "## Data",
        "",
        "| | source | examples |",
        "| --- | --- | --- |",
        f"| training | `{data.sources.get('train', '')}` | {data.train:,} |",
        f"| validation | `{data.sources.get('valid', '')}` | {data.valid:,} |",
        "",
        *([f"Left out: {', '.join(left_out)}.", ""] if left_out else []),
        *([f"Truncated: {', '.join(truncated)}.", ""] if truncated else []),
        "## Figures",
        "",
    ]
    if result.scores:
        lines += ["| validation | |", "| --- | --- |"]
        lines += [f"| {metric} | {value:.4g} |" for metric, value in result.scores.items()]
        lines += _how_validated(plan, data.valid)
    else:
        lines += ["There was no validation data."]
    lines += [
        "",
        f"After {result.step:,} step{'s' * (result.step != 1)} and {_lasted(result.seconds)} "
        f"(ended by {result.reason}); the weights are the {result.chosen} of step {result.chosen_step:,}.",
        "",
        "## How it was made",
        "",
        "```",
        *(start.command for start in data.starts),
        "```",
        "",
        f"Seed {plan.trainer.seed}; every other argument is in `config.yaml`.",
        "",
        *_versions(data.starts[0], data.starts[-1]),
        "",
    ]
    return "\n".join(lines)


def _lasted(seconds: float) -> str:
    return f"{seconds:.1f} seconds" if seconds < 60 else f"{seconds / 60:.1f} minutes"


def _how_validated(plan: Plan, examples: int) -> list[str]:
    """How these figures were computed, and why an evaluation may give others."""
    given, predicted = plan.trainer.validate_options, plan.trainer.validate_examples
    search, usual = (plan.task.options.of(options).describe() for options in (given, {}))
    if predicted == 0 or not search:
        return []
    some = "" if predicted is None or predicted >= examples else f" for the first {predicted:,} of these examples"
    more = "" if search == usual else f"; `saccade evaluate` and `predict` use {usual} by default"
    return ["", f"Predicted by {search}{some}{more}."]


def _versions(first: Start, last: Start) -> list[str]:
    """A table, with a second column if the training was resumed with other versions."""
    if first.versions == last.versions:
        return ["| | version |", "| --- | --- |", *(f"| {name} | {v} |" for name, v in first.versions.items())]
    names = {**first.versions, **last.versions}
    rows = [f"| {name} | {first.versions.get(name, '')} | {last.versions.get(name, '')} |" for name in names]
    return ["| | at first | when last resumed |", "| --- | --- | --- |", *rows]
