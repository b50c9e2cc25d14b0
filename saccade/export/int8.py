"""int8: the run with 8-bit weights, for faster predictions on a CPU."""

from __future__ import annotations

import copy
import math
import shutil
from pathlib import Path
from typing import NamedTuple

from saccade.artifacts import save_weights
from saccade.configuration import ConfigError
from saccade.evaluation import Figure
from saccade.export.base import Format, formats
from saccade.models.quantised import is_quantised, quantisable, quantise_layers
from saccade.runs import Run
from saccade.runs.folder import WEIGHTS

MOST_LOST = 0.5
"""How many points a figure may lose without a warning."""


class FigureChange(NamedTuple):
    """A figure of the task before and after."""

    name: str
    before: float
    after: float
    lost: float
    """How much worse it became; negative if it became better."""


@formats.register("int8")
class Int8(Format):
    """A run folder whose largest linear layers have 8-bit weights: smaller, and faster on a CPU.

    `saccade predict`, `evaluate` and `serve` read it like any run. The layers of attention heads, feed-forward networks
    and outputs are rounded, each output with its own scale; their inputs are rounded on the fly. The card shows how the
    task's figures change, and points out any that lose more than 0.5 points.

    Args:
        data: the examples to measure both on; by default the validation data of the training.
        batch_size: how many examples are answered together.
    """

    def __init__(self, *, data: str | None = None, batch_size: int = 64) -> None:
        self.data = data
        self.batch_size = batch_size

    def check(self, run: Run) -> None:
        if is_quantised(run.model):
            raise ValueError(f"The weights of {run.folder} are already 8-bit.")
        if not quantisable(run.model):
            raise ValueError(
                f"{type(run.model).__name__} has no layers that 8-bit weights make faster: those of attention heads, "
                "feed-forward networks and linear outputs are rounded."
            )
        if self._data(run) is None:
            raise ConfigError(
                "The figures before and after need data, and the run has no validation files. Add --data test.tsv"
            )

    def write(self, run: Run, output: Path) -> None:
        model = quantise_layers(copy.deepcopy(run.model), quantisable(run.model))
        rounded = Run(output, run.plan, model)
        data = self._data(run)
        assert data is not None
        changes = compare(run, rounded, data, self.batch_size)
        shutil.copyfile(run.folder / "config.yaml", output / "config.yaml")
        shutil.copytree(run.folder / "task", output / "task")
        save_weights(model, output / WEIGHTS)
        (output / "README.md").write_text(card(run, changes, data), encoding="utf-8")

    def _data(self, run: Run) -> str | list[str] | None:
        """What both are measured on."""
        return self.data or run.plan.data.valid or None


def compare(run: Run, rounded: Run, data: str | list[str], batch_size: int) -> list[FigureChange]:
    """The figures of the task on these examples for both runs."""
    before, after = (each.evaluate(data, batch_size=batch_size).figures for each in (run, rounded))
    higher = run.task.metrics
    return [_change(name, figure, after[name], higher.get(name, True)) for name, figure in before.items()]


def _change(name: str, before: Figure, after: Figure, higher: bool) -> FigureChange:
    lost = before.value - after.value if higher else after.value - before.value
    return FigureChange(name, before.value, after.value, math.inf if math.isnan(lost) else lost)


def card(run: Run, changes: list[FigureChange], data: str | list[str]) -> str:
    """The model card: what was done, how the figures changed, and the card of the original."""
    worse = [change for change in changes if change.name in run.task.metrics and change.lost > MOST_LOST]
    verdict = (
        "**These figures lost more than 0.5 points:** " + ", ".join(f"{c.name} ({c.lost:.2f})" for c in worse) + "."
        if worse
        else "No figure of the task lost more than 0.5 points."
    )
    original = run.folder / "README.md"
    first = (data.split(",") if isinstance(data, str) else data)[0]
    lines = [
        f"# {run.folder.name}, with 8-bit weights",
        "",
        "The linear layers of attention heads, feed-forward networks and outputs have 8-bit weights. Use it on a "
        "CPU like any run.",
        "",
        f"| on `{Path(first).name}` | float32 | int8 |",
        "| --- | --- | --- |",
        *(f"| {change.name} | {change.before:.4g} | {change.after:.4g} |" for change in changes),
        "",
        verdict,
        "",
    ]
    text = "\n".join(lines)
    return text + "\n" + original.read_text(encoding="utf-8") if original.is_file() else text
