"""What an engine is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from saccade.bulk.blocks import Block
from saccade.bulk.job import BulkJob
from saccade.bulk.manifest import Done
from saccade.registry import Registry


class Engine:
    """Works on the blocks of a job, in any order; `BulkJob.run` does the work itself.

    Args:
        workers: how many blocks or batches are worked on at a time; None leaves it to the engine.
    """

    def __init__(self, *, workers: int | None = None) -> None:
        self.workers = workers

    def run(self, job: BulkJob, blocks: Sequence[Block]) -> Iterator[Done]:
        """Yields each block once its output file is complete.

        A block may be processed twice, for example after the loss of a machine: its output file is the same.
        """
        raise NotImplementedError


engines: Registry[Engine] = Registry("engine", base=Engine, home="saccade.bulk.engines")
