"""Progress while data is prepared: a line for each stage, and how far it is."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from saccade.data.extra import required
from saccade.training.progress import SILENCE

T = TypeVar("T")


class Stage(Iterable[T]):
    """Examples that pass through one stage of a preparation, once or several times.

    Its name is printed first; then a terminal shows a bar, and anything else gets a count each half minute.

    Args:
        name: what is done, such as "Reading pairs.tsv".
        examples: what it is done to.
        total: how many there are, if that is known.
        main: whether this is the process that prints.
    """

    def __init__(self, name: str, examples: Iterable[T], *, total: int | None = None, main: bool = True) -> None:
        self.name, self.examples, self.total, self.main = name, examples, total, main
        self._bar: Any = None

    def __enter__(self) -> Stage[T]:
        if self.main:
            say(f"{self.name} ...")
            if sys.stderr.isatty():
                self._bar = _bar()
                self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __iter__(self) -> Iterator[T]:
        task = None if self._bar is None else self._bar.add_task("", total=self.total)
        every = SILENCE if task is None else 0.25
        said = time.monotonic()
        for number, example in enumerate(self.examples):
            if number % 64 == 0 and self.main and time.monotonic() - said >= every:
                said = time.monotonic()
                if task is None:
                    say(f"  {number:,}{'' if self.total is None else f' of {self.total:,}'} examples")
                else:
                    self._bar.update(task, completed=number)
                    self._bar.refresh()
            yield example
        if task is not None:
            self._bar.remove_task(task)


def say(line: str) -> None:
    """Prints a line for the user on standard error."""
    print(line, file=sys.stderr, flush=True)


def _bar() -> Any:
    bars = required("rich.progress")
    return bars.Progress(
        bars.BarColumn(),
        bars.TextColumn("{task.completed:,} examples"),
        bars.TimeRemainingColumn(),
        console=required("rich.console").Console(stderr=True),
        auto_refresh=False,  # no thread beside the work
        transient=True,
    )
