"""The default engine: this process and its own workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext

from saccade.bulk.blocks import Block
from saccade.bulk.engines.base import Engine, engines
from saccade.bulk.job import BulkJob
from saccade.bulk.manifest import Done
from saccade.runs.workers import Workers


@engines.register("embedded")
class Embedded(Engine):
    """One block after the other on this machine; with several workers, processes share its batches."""

    def run(self, job: BulkJob, blocks: Sequence[Block]) -> Iterator[Done]:
        several = self.workers is not None and self.workers != 1
        with Workers(job.task, job.model, self.workers or 1) if several else nullcontext() as workers:
            for block in blocks:
                yield job.run(block, None if workers is None else workers.predict)
