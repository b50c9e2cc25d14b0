"""Processes that predict side by side: on a CPU two of one thread do more than one of two."""

from __future__ import annotations

import io
import os
import pickle
import queue
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import IO, Any

import torch
from torch import nn

from saccade.checks import check_count
from saccade.tasks.base import Prediction, Task


class Workers:
    """Several copies of a model, each in a process of its own with one thread, that predict as the model would.

    They get whole batches, the same ones that the model alone would make, so that the predictions are the same. They
    are started by `with`, which takes seconds, and ended by leaving it.

    Args:
        task, model: as those of `Task.predict`; the model is on the CPU.
        count: how many.
    """

    def __init__(self, task: Task, model: nn.Module, count: int) -> None:
        check_count("workers", count)
        device = next((parameter.device.type for parameter in model.parameters()), "cpu")
        if device != "cpu":
            raise ValueError(f"workers={count} are for a CPU, and the model is on {device}.")
        self.task = task
        self.count = count
        self._given = pickle.dumps((task, model))
        self._processes: list[_Process] = []
        self._idle: queue.Queue[_Process] = queue.Queue()

    def __enter__(self) -> Workers:
        for _ in range(self.count):
            self._processes.append(_Process(self._given))
            self._idle.put(self._processes[-1])
        return self

    def __exit__(self, *error: object) -> None:
        for process in self._processes:
            process.end()

    def predict(self, inputs: Sequence[Any], *, batch_size: int = 64, **options: Any) -> list[Prediction]:
        """One prediction for each input, in order."""
        batches = self.task.batches(inputs, batch_size)
        with ThreadPoolExecutor(self.count) as threads, self._ending_all():
            parts = list(threads.map(lambda numbers: self._ask(inputs, numbers, options), batches))
        found: dict[int, Prediction] = {}
        for numbers, predictions in zip(batches, parts, strict=True):
            found |= zip(numbers, predictions, strict=True)
        return [found[number] for number in range(len(inputs))]

    def _ask(self, inputs: Sequence[Any], numbers: Sequence[int], options: dict[str, Any]) -> list[Prediction]:
        prefix = options.get("prefix")
        if isinstance(prefix, list | tuple) and prefix and not isinstance(prefix[0], int):  # one for each input
            if len(prefix) != len(inputs):
                raise ValueError(f"prefix is one for all or one for each of {len(inputs)} inputs, got {len(prefix)}.")
            options = {**options, "prefix": [prefix[number] for number in numbers]}
        process = self._idle.get()
        try:
            return process.ask([inputs[number] for number in numbers], {**options, "batch_size": len(numbers)})
        finally:
            self._idle.put(process)

    @contextmanager
    def _ending_all(self) -> Iterator[None]:
        """If the caller is interrupted, threads that wait for an answer must not be waited for."""
        try:
            yield
        except Exception:
            raise
        except BaseException:
            self.__exit__()
            raise


class _Process:
    """One of them, seen from here."""

    def __init__(self, given: bytes) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        environment["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "saccade.workers"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        _write(self._to, given)

    def ask(self, inputs: Sequence[Any], options: dict[str, Any]) -> list[Prediction]:
        try:
            _write(self._to, pickle.dumps((inputs, options)))
            answer = _read(self._from)
        except BrokenPipeError:
            answer = None
        if answer is None:
            raise ChildProcessError(
                f"A worker ended with exit code {self._process.wait()}: if memory is short, use fewer workers."
            )
        said = pickle.loads(answer)
        if isinstance(said, Exception):
            raise said
        return [_with_tensors(prediction) for prediction in said]

    def end(self) -> None:
        self._process.terminate()
        self._process.wait()
        with suppress(BrokenPipeError):  # what it has not read is lost
            self._to.close()
        self._from.close()


def work(requests: IO[bytes], answers: IO[bytes]) -> None:
    """The other end of `_Process`: a task and a model, then inputs with options until there are no more."""
    given = _read(requests)
    if given is None:
        return
    task, model = pickle.loads(given)
    while (request := _read(requests)) is not None:
        inputs, options = pickle.loads(request)
        answer: Any
        try:
            answer = [_with_arrays(prediction) for prediction in task.predict(model, inputs, **options)]
        except Exception as error:
            answer = error
        _write(answers, pickle.dumps(answer))


def _with_arrays(prediction: Prediction) -> Prediction:
    """Weights as arrays, which are packed many times faster than tensors."""
    weights: Any = None if prediction.weights is None else prediction.weights.numpy()
    return replace(prediction, weights=weights, nbest=[_with_arrays(one) for one in prediction.nbest])


def _with_tensors(prediction: Prediction) -> Prediction:
    weights: Any = prediction.weights
    weights = None if weights is None else torch.from_numpy(weights)
    return replace(prediction, weights=weights, nbest=[_with_tensors(one) for one in prediction.nbest])


def _write(to: IO[bytes], message: bytes) -> None:
    to.write(len(message).to_bytes(8, "big"))
    to.write(message)
    to.flush()


def _read(source: IO[bytes]) -> bytes | None:
    """The next message; None at the end."""
    size = source.read(8)
    return source.read(int.from_bytes(size, "big")) if len(size) == 8 else None


if __name__ == "__main__":
    from saccade.kernels.allocation import keep_freed_memory

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started us ends us
    answers = io.FileIO(os.dup(1), "w")
    os.dup2(2, 1)  # what a model prints must not get among the answers
    keep_freed_memory()
    with io.BufferedWriter(answers) as out:
        work(sys.stdin.buffer, out)
