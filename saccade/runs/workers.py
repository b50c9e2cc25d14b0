"""Processes that predict in parallel: on a CPU, two with one thread each are faster than one with two."""

from __future__ import annotations

import io
import os
import queue
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import fields
from typing import IO, Any

import torch
from torch import nn

from saccade.checks import check_count
from saccade.runs.frames import pack, read
from saccade.tasks import Answer, Options, Task

MOST = max(32, 2 * (os.cpu_count() or 1))
"""The maximum number of processes; each has a copy of the model."""


class Workers:
    """Several copies of a model, each in its own process with one thread, that predict as the model would.

    They get whole batches, the same ones that the model alone would make, so that the answers are the same. Entering
    the context starts them, which takes seconds, and leaving it ends them.

    Args:
        task, model: as for `Task.predict`; the model is on the CPU.
        count: how many.
    """

    def __init__(self, task: Task, model: nn.Module, count: int) -> None:
        check_count("workers", count)
        if count > MOST:
            raise ValueError(f"workers must be {MOST} or fewer, got {count}: more than there are cores do not help.")
        device = next((parameter.device.type for parameter in model.parameters()), "cpu")
        if device != "cpu":
            raise ValueError(f"workers={count} needs a model on the CPU, but this one is on {device}.")
        self.task = task
        self.model = model
        self.count = count
        self._given = pack((task, model))
        self._processes: list[_Process] = []
        self._idle: queue.Queue[_Process] = queue.Queue()

    def __enter__(self) -> Workers:
        self._processes = [_Process() for _ in range(self.count)]
        for process in self._processes:  # once all have been started: each reads only after seconds of importing
            process.give(self._given)
            self._idle.put(process)
        return self

    def __exit__(self, *error: object) -> None:
        for process in self._processes:
            process.end()

    def predict(self, inputs: Sequence[Any], *, batch_size: int = 64, **options: Any) -> list[Answer]:
        """One prediction for each input, in order."""
        asked = self.task.options.of(options)
        batches = self.task.batches(self.model, inputs, batch_size)
        with ThreadPoolExecutor(self.count) as threads, self._ending_all():
            parts = list(threads.map(lambda numbers: self._ask(inputs, numbers, asked), batches))
        found: dict[int, Answer] = {}
        for numbers, answers in zip(batches, parts, strict=True):
            found |= zip(numbers, answers, strict=True)
        return [found[number] for number in range(len(inputs))]

    def _ask(self, inputs: Sequence[Any], numbers: Sequence[int], options: Options) -> list[Answer]:
        process = self._idle.get()
        try:
            return process.ask([inputs[number] for number in numbers], options.part(numbers, len(inputs)))
        finally:
            self._idle.put(process)

    @contextmanager
    def _ending_all(self) -> Iterator[None]:
        """Ends all processes if the caller is interrupted, so that no thread waits for an answer."""
        try:
            yield
        except Exception:
            raise
        except BaseException:
            self.__exit__()
            raise


class _Process:
    """One of them, seen from here."""

    def __init__(self) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        environment["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
        self._process = subprocess.Popen(
            # -P: the working folder, which may be a stranger's run, is not where modules come from
            [sys.executable, "-P", "-c", "from saccade.runs.workers import serve; serve()"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout

    def give(self, given: bytes) -> None:
        """Sends the task and the model; if the process has ended, `ask` says so."""
        with suppress(BrokenPipeError):
            self._say(given)

    def ask(self, inputs: Sequence[Any], options: Options) -> list[Answer]:
        try:
            self._say(pack((inputs, options)))
            said = read(self._from)
        except BrokenPipeError:
            said = None
        if said is None:
            raise ChildProcessError(
                f"A worker ended with exit code {self._process.wait()}: if memory is short, use fewer workers."
            )
        if isinstance(said, Exception):
            raise said
        return [answer.with_weights(torch.from_numpy) for answer in said]

    def _say(self, message: bytes) -> None:
        self._to.write(message)
        self._to.flush()

    def end(self) -> None:
        self._process.terminate()
        self._process.wait()
        with suppress(BrokenPipeError):  # what it has not read is lost
            self._to.close()
        self._from.close()


def work(requests: IO[bytes], answers: IO[bytes]) -> None:
    """The other end of `_Process`: a task and a model, then inputs with options until there are no more."""
    given = read(requests)
    if given is None:
        return
    task, model = given
    while (request := read(requests)) is not None:
        inputs, options = request
        answer: Any
        try:
            asked = {field.name: getattr(options, field.name) for field in fields(options)}
            found = task.predict(model, inputs, batch_size=len(inputs), **asked)
            answer = [each.with_weights(lambda weights: weights.numpy()) for each in found]  # packed faster
        except Exception as error:
            answer = error
        answers.write(pack(answer))
        answers.flush()


def serve() -> None:
    """What a worker's process does."""
    from saccade.kernels.allocation import keep_freed_memory

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started us ends us
    answers = io.FileIO(os.dup(1), "w")
    os.dup2(2, 1)  # what a model prints must not get among the answers
    keep_freed_memory()
    with io.BufferedWriter(answers) as out:
        work(sys.stdin.buffer, out)
