"""What training prints: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections import deque
from typing import Any, NamedTuple, TextIO

from saccade.data.extra import required
from saccade.training.position import duration

SILENCE = 30.0
"""The maximum number of seconds without a line, however few steps there were."""


class StepReport(NamedTuple):
    """What is known after a training step."""

    step: int
    epoch: int
    """Counted from 1."""
    loss: float
    """The mean of this step's batch, on the scale of validation."""
    learning_rate: float
    tokens: int
    seconds: float
    """How long the step took."""
    done: float
    """The fraction of the training that is done."""
    left: float | None
    """How many seconds it will still take, if that is known."""


class Progress:
    """Shows nothing; used by all processes but the first."""

    def step(self, report: StepReport) -> None:
        """After each training step."""

    def validation(self, step: int, scores: dict[str, float], best: str | None) -> None:
        """After each validation; `best` is the figure that decides, if it is the best so far."""

    def say(self, text: str) -> None:
        """One line of text."""

    def close(self) -> None:
        """At the end."""


class PlainProgress(Progress):
    """A line every few steps, or every half minute if steps are slow, and after the last one, for files and pipes."""

    def __init__(self, *, every: int, unit: str = "tokens", stream: TextIO | None = None) -> None:
        self.every = every
        self.stream = stream or sys.stderr
        self._recent = Recent(unit)
        self._loss = MeanLoss()
        self._said = time.monotonic()

    def step(self, report: StepReport) -> None:
        self._recent.add(report)
        self._loss.add(report)
        if report.step % self.every == 0 or report.done >= 1.0 or time.monotonic() - self._said >= SILENCE:
            left = "" if report.left is None else f"  {duration(report.left)} left"
            self.say(
                f"step {report.step}  epoch {report.epoch}  loss {self._loss.take():.4f}  "
                f"learning rate {report.learning_rate:.3g}  {self._recent.speed}{left}"
            )

    def validation(self, step: int, scores: dict[str, float], best: str | None) -> None:
        self.say(f"step {step}  validation: {describe_scores(scores)}{_praise(best)}")

    def say(self, text: str) -> None:
        print(text, file=self.stream, flush=True)
        self._said = time.monotonic()


class BarProgress(Progress):
    """A bar with loss, tokens per second, time left and the last validation, drawn with rich."""

    def __init__(self, *, unit: str = "tokens", console: Any = None) -> None:
        console = console or required("rich.console").Console(stderr=True)
        bars = required("rich.progress")
        self._bar = bars.Progress(
            bars.TextColumn("step {task.fields[step]}"),
            bars.BarColumn(bar_width=None),
            bars.TaskProgressColumn(),
            bars.TextColumn("{task.fields[loss]}"),
            bars.TextColumn("{task.fields[speed]}"),
            bars.TextColumn("{task.fields[left]}"),
            bars.TextColumn("{task.fields[scores]}", style="green"),
            console=console,
            auto_refresh=False,  # no thread next to the training
            transient=True,
        )
        self._task = self._bar.add_task("", total=1.0, step=0, loss="", speed="", left="", scores="")
        self._recent = Recent(unit)
        self._refreshed = 0.0
        self._bar.start()

    def step(self, report: StepReport) -> None:
        self._recent.add(report)
        if time.monotonic() - self._refreshed < 0.25:
            return
        self._bar.update(
            self._task,
            completed=report.done,
            step=report.step,
            loss=f"loss {self._recent.loss:.4f}",
            speed=self._recent.speed,
            left="" if report.left is None else f"{duration(report.left)} left",
        )
        self._bar.refresh()
        self._refreshed = time.monotonic()

    def validation(self, step: int, scores: dict[str, float], best: str | None) -> None:
        text = describe_scores(scores)
        self._bar.update(self._task, scores=text)
        self.say(f"step {step}  validation: {text}{_praise(best)}")

    def say(self, text: str) -> None:
        self._bar.console.print(text, markup=False, highlight=False)

    def close(self) -> None:
        self._bar.stop()


class MeanLoss:
    """The mean loss per token since it was last taken, since a single batch says little."""

    def __init__(self) -> None:
        self._total, self._count = 0.0, 0

    def add(self, report: StepReport) -> None:
        self._total += report.loss * report.tokens
        self._count += report.tokens

    def take(self) -> float:
        mean = self._total / max(1, self._count)
        self._total, self._count = 0.0, 0
        return mean


class Recent:
    """The last steps: their mean loss by token, and how many tokens, or other items, they took per second."""

    def __init__(self, unit: str, steps: int = 50) -> None:
        self.unit = unit
        self._reports: deque[StepReport] = deque(maxlen=steps)

    def add(self, report: StepReport) -> None:
        self._reports.append(report)

    @property
    def loss(self) -> float:
        return sum(r.loss * r.tokens for r in self._reports) / max(1, sum(r.tokens for r in self._reports))

    @property
    def speed(self) -> str:
        seconds = sum(r.seconds for r in self._reports)
        return f"{sum(r.tokens for r in self._reports) / seconds:,.0f} {self.unit}/s" if seconds else ""


def make_progress(*, every: int, unit: str, main: bool) -> Progress:
    """The bar if the error stream is a terminal, else lines; nothing on any process but the main one."""
    if not main:
        return Progress()
    return BarProgress(unit=unit) if sys.stderr.isatty() else PlainProgress(every=every, unit=unit)


def describe_scores(scores: dict[str, float]) -> str:
    """Names and values in one line."""
    return "  ".join(f"{name} {value:.4g}" for name, value in scores.items())


def _praise(best: str | None) -> str:
    return "" if best is None else f"  (best {best} so far)"
