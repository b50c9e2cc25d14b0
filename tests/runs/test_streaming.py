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

shards, output, small = sys.argv[1:]


def train(data, output):
    saccade.train(
        "classification/pooling",
        data={"train": data, "columns": {"text": "body", "label": "kind"}, "held_out": 0.0},
        task={"inputs": {"text": {"class": "text", "tokeniser": "word", "max_length": 10}}},
        model={"embedding_dim": 5},
        trainer={"max_steps": 2, "batch_tokens": 60, "metric": "loss", "patience": None, "validate_examples": 0},
        output=output,
    )


train(small, output + "/small")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
train(shards, output + "/large")
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
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
    sizes = [write(tmp_path / f"shard-{shard}.parquet", 1000 * shard, 1000, 200_000) for shard in range(3)]
    shards, first = str(tmp_path / "shard-*.parquet"), str(tmp_path / "shard-0.parquet")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", TRAIN, shards, str(tmp_path), first]
    done = subprocess.run(command, text=True, capture_output=True, env=environment)
    assert done.returncode == 0, done.stderr
    more = sum(sizes[1:])
    assert more > 400e6
    assert int(done.stdout) < more / 4, f"{int(done.stdout):,} bytes for {more:,} bytes of data more"
