"""Training on Parquet shards that are larger than the memory that it takes."""

import os
import subprocess
import sys

import pytest

import saccade
from saccade.runs.provenance import Provenance

TRAIN = """
import resource, sys
import saccade

saccade.train(
    "classification/pooling",
    data={"train": sys.argv[1], "columns": {"text": "body", "label": "kind"}, "held_out": 0.0},
    task={"inputs": {"text": {"class": "text", "tokeniser": "word", "max_length": 10}}},
    model={"embedding_dim": 5},
    trainer={"max_steps": 2, "batch_tokens": 60, "metric": "loss", "patience": None, "schedule": "constant"},
    output=sys.argv[2],
)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def write(path, start, count, long) -> int:
    import pyarrow
    from pyarrow import parquet

    schema = pyarrow.schema([("kind", pyarrow.string()), ("body", pyarrow.string())])
    with parquet.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for first in range(start, start + count, 50):
            rows = [
                {"kind": "ab"[n % 2], "body": f"{'yn'[n % 2]} {n % 97} {'x' * long}"} for n in range(first, first + 50)
            ]
            writer.write_table(pyarrow.Table.from_pylist(rows, schema))
    return os.path.getsize(path)


def test_a_pattern_names_all_shards_in_order(tmp_path) -> None:
    for shard in range(3):
        write(tmp_path / f"shard-{shard}.parquet", 50 * shard, 50, 3)
    run = saccade.train(
        "classification/pooling",
        data={
            "train": str(tmp_path / "shard-*.parquet"),
            "columns": {"text": "body", "label": "kind"},
            "held_out": 0.1,
        },
        model={"embedding_dim": 5},
        trainer={"max_steps": 1, "batch_tokens": 60, "metric": "loss", "validate_examples": 0},
        output=tmp_path / "run",
    )
    read = Provenance.read(run.folder)
    assert read.train + read.valid == 150
    again = saccade.train(resume=tmp_path / "run", overrides={"trainer.max_steps": 2})
    assert again.result.step == 2
    with pytest.raises(FileNotFoundError, match="no file like"):
        saccade.train("classification/pooling", data=str(tmp_path / "none-*.parquet"), output=tmp_path / "other")


@pytest.mark.slow
def test_memory_does_not_grow_with_the_data(tmp_path) -> None:
    sizes = [write(tmp_path / f"shard-{shard}.parquet", 1000 * shard, 1000, 200_000) for shard in range(4)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    peaks = []
    for shards in ("shard-0.parquet", "shard-*.parquet"):
        command = [sys.executable, "-c", TRAIN, str(tmp_path / shards), str(tmp_path / f"run-{len(peaks)}")]
        done = subprocess.run(command, text=True, capture_output=True, env=environment)
        assert done.returncode == 0, done.stderr
        peaks.append(int(done.stdout))
    more = sum(sizes[1:])
    assert more > 600e6
    assert peaks[1] - peaks[0] < more / 6, f"{peaks[1] - peaks[0]:,} bytes for {more:,} bytes of data more"
