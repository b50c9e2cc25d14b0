"""Batches of tensors, prepared in the background where that takes time."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import torch
from torch import Tensor

from saccade.tasks import Row, Task
from saccade.training.stream import rows

WORKERS = 2
"""Threads that decode files: the libraries that do the work release Python's lock."""


class Batching:
    """The tensors of training batches.

    Randomness in a batch, such as augmentation, depends only on the seed and the position of the batch. It does not
    depend on when the batch is prepared, and a resumed training repeats it.

    Args:
        task: collates rows; its fields say whether that is worth a thread.
        examples: encoded.
        seed: of the training.
        process: the number of this process, whose share of a batch has its own randomness.
    """

    def __init__(self, task: Task, examples: Sequence[Row], *, seed: int, process: int) -> None:
        self.task, self.examples = task, examples
        self.seed, self.process = seed, process
        slow = any(field.decodes for field in task.fields.values())
        self._threads = ThreadPoolExecutor(WORKERS) if slow else None
        self._coming: dict[int, tuple[list[int], Future[dict[str, Tensor]]]] = {}

    def batch(self, place: int, indices: Sequence[int]) -> dict[str, Tensor]:
        """The batch at a place, counted from the start of training; an empty one is the first example."""
        wanted = list(indices) or [0]
        known, coming = self._coming.pop(place, (None, None))
        if coming is not None and known == wanted:
            return coming.result()
        return self._collate(place, wanted)

    def prefetch(self, place: int, batches: Sequence[Sequence[int]]) -> None:
        """Starts to prepare the batches from a place on."""
        if self._threads is None:
            return
        for number, indices in enumerate(batches, start=place):
            wanted = list(indices) or [0]
            self._coming[number] = wanted, self._threads.submit(self._collate, number, wanted)

    def close(self) -> None:
        """Ends the threads."""
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)

    def _collate(self, place: int, indices: list[int]) -> dict[str, Tensor]:
        name = f"{self.seed} {place} {self.process}".encode()
        seed = int.from_bytes(hashlib.blake2b(name, digest_size=7).digest())
        return self.task.collate(rows(self.examples, indices), generator=torch.Generator().manual_seed(seed))
