"""A worker of a server: a process with a copy of a model that answers batches, one after the other."""

from __future__ import annotations

import io
import json
import math
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from typing import Any, Literal, NamedTuple

import torch

from saccade.runs import Run, load
from saccade.runs.frames import pack, read
from saccade.serving.pauses import spare_collector
from saccade.tasks import Answer, Example, Options
from saccade.tasks.noticing import warnings_about

STOP = "stop"
"""A message that ends the stream that a worker is writing, because nobody is listening any more."""


class StoppedError(Exception):
    """A stream was told to stop."""


class Reply(NamedTuple):
    """A worker's reply to one job."""

    state: Literal["ready", "event", "done", "bad", "failed"]
    """`bad` means an unusable input, `failed` an internal error."""

    value: Any = None
    """JSON or a page as bytes; for `bad`, what is wrong; for `failed`, where."""


class Work:
    """What a worker does with its run.

    Args:
        run: the model.
        emit: takes the events of a stream.
    """

    def __init__(self, run: Run, emit: Callable[[Reply], None]) -> None:
        self.run, self.emit = run, emit

    def do(self, kind: str, several: Sequence[Any]) -> list[Reply]:
        """A reply to each job of a batch; one bad input does not spoil the others."""
        try:
            if kind == "predict":
                return self._predict([given for given, _, _ in several], several[0][1], several[0][2])
            do: Callable[..., Reply] = self._explain if kind == "explain" else self._stream
            return [do(*given) for given in several]
        except Exception as error:
            if len(several) > 1:
                return [reply for each in several for reply in self.do(kind, [each])]
            if isinstance(error, ValueError | TypeError | OverflowError):
                return [Reply("bad", str(error))]
            return [Reply("failed", place_of(error))]

    def _predict(self, examples: Sequence[Example], options: Options, attention: bool) -> list[Reply]:
        with torch.inference_mode():  # less work for each operation; these tensors go nowhere else
            answers = self.run.answer(examples, batch_size=len(examples), **_given(options))
            return [Reply("done", each) for each in self._json(examples, answers, attention)]

    def _explain(self, example: Example, options: dict[str, Any], form: str, title: str) -> Reply:
        from saccade.interpretation.explorer import render

        items = self.run.task.explain(self.run.model, [example], **options)
        return Reply("done", render(items, form, title=title))

    def _stream(self, example: Example, options: Options) -> Reply:
        task, model = self.run.task, self.run.model
        answer = task.stream(model, example, options, lambda event: self.emit(Reply("event", _dump(event))))
        return Reply("done", *self._json([example], [answer], True))

    def _json(self, examples: Sequence[Example], answers: Sequence[Answer], attention: bool) -> Iterator[bytes]:
        """The answers, each with the warnings about its input."""
        warnings = warnings_about(self.run.task, self.run.model, examples, answers)
        for number, (example, answer) in enumerate(zip(examples, answers, strict=True)):
            shown = self.run.task.as_json(example, answer, attention=attention)
            yield _dump({**shown, "warnings": warnings[number]} if number in warnings else shown)


def place_of(error: BaseException) -> str:
    """Where an error came from, and its kind; not its message, which may quote an input."""
    return "".join([*traceback.format_tb(error.__traceback__), type(error).__name__])


def _dump(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except ValueError:  # JSON has neither NaN nor infinity
        return json.dumps(_finite(value), ensure_ascii=False, separators=(",", ":")).encode()


def _finite(value: Any) -> Any:
    """The value with None in place of NaN and infinite numbers."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _given(options: Options) -> dict[str, Any]:
    return {field.name: getattr(options, field.name) for field in fields(options)}


def main() -> None:
    """What the process does: loads the run that its argument names, then answers until its input ends."""
    from saccade.kernels.allocation import keep_freed_memory

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the server ends its workers, once they have answered
    answers = io.FileIO(os.dup(1), "w")
    os.dup2(2, 1)  # what a model prints must not get among the answers
    keep_freed_memory()
    with io.BufferedWriter(answers) as out:

        def say(replies: Reply | list[Reply]) -> None:
            out.write(pack(replies))
            out.flush()

        def say_unless_stopped(event: Reply) -> None:
            if select.select([sys.stdin], [], [], 0)[0]:  # between two batches, the server sends nothing else
                raise StoppedError
            say(event)

        try:
            work = Work(load(sys.argv[1], trust=sys.argv[2] == "trust"), say_unless_stopped)
        except (ValueError, OSError) as error:
            say(Reply("bad", str(error)))
            return
        spare_collector()
        say(Reply("ready"))
        while (message := read(sys.stdin.buffer)) is not None:
            if message[0] != STOP:  # that of a stream that had just ended
                say(work.do(*message))
    os._exit(0)  # Python would spend a second on forgetting its modules, while a server waits to end
