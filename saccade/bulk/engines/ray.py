"""Ray Data: actors on the machines of a cluster, each with a copy of the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from saccade.bulk.blocks import Block
from saccade.bulk.engines.base import Engine, engines
from saccade.bulk.job import BulkJob
from saccade.bulk.manifest import Done
from saccade.data.errors import DataError
from saccade.data.extra import required, start_ray
from saccade.data.readers import FilePart


@engines.register("ray")
class Ray(Engine):
    """The cluster that `RAY_ADDRESS` names or that runs on this machine, or else a new one on this machine's cores.

    The model travels through Ray; the input files and the output folder must be on a disk that all machines share,
    under the same paths. Ray repeats the blocks of a machine that is lost.
    """

    def run(self, job: BulkJob, blocks: Sequence[Block]) -> Iterator[Done]:
        ray, data = required("ray", "ray"), required("ray.data", "ray")
        started = not ray.is_initialized()
        if started:
            start_ray()
        try:
            data.DataContext.get_current().enable_progress_bars = False
            count = min(self.workers or int(ray.cluster_resources().get("CPU", 1)), len(blocks))
            items = [{"number": block.number, "file": block.file, "part": list(block.part)} for block in blocks]
            found = data.from_items(items, override_num_blocks=len(items)).map_batches(
                Worker,
                fn_constructor_args=(ray.put(job),),
                batch_size=1,
                batch_format="numpy",
                concurrency=count,
                num_cpus=1,
            )
            for row in found.iter_rows():
                if row["error"]:
                    raise DataError(row["error"])
                yield Done(**row["done"])
        finally:
            if started:
                ray.shutdown()


class Worker:
    """An actor with a copy of the model."""

    def __init__(self, job: Any) -> None:
        self.job: BulkJob = required("ray", "ray").get(job)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        """Processes one block; errors in the data are returned, since Ray would retry if they were raised."""
        block = Block(int(batch["number"][0]), str(batch["file"][0]), FilePart(*map(int, batch["part"][0])))
        try:
            return {"done": [asdict(self.job.run(block))], "error": [""]}
        except (ValueError, TypeError) as error:
            return {"done": [asdict(Done(block.number, 0, 0))], "error": [str(error)]}
