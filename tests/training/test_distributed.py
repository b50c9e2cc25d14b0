"""Several processes against one, on the loopback interface."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from saccade.artifacts import read_tensors
from saccade.training import Checkpoints
from tests.ports import free_port
from tests.training.processes import records, wait_for_step

LAUNCHER = ("-m", "torch.distributed.run", "--master-addr", "127.0.0.1", "--nproc-per-node")
ROOT = Path(__file__).parents[2]


def start(output, *, processes=2, port=None, nodes=1, node=0, resume=False, **options):
    launcher = []
    if processes > 1 or nodes > 1:
        launcher = [*LAUNCHER, str(processes), "--master-port", str(port or free_port())]
        launcher += ["--nnodes", str(nodes), "--node-rank", str(node)]
    command = [sys.executable, *launcher, "-m", "tests.training.run_toy", str(output), json.dumps(options)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        command + ["--resume"] * resume, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True
    )


def finish(process):
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors


# A batch of 13 tokens holds a single long example: the second process has none of it.
OPTIONS = {
    "dropout": 0.0, "max_steps": 40, "validate_every": 20, "batch_tokens": 13, "accumulate": 3, "unused": True,
    "count": 23, "learning_rate": 0.01,
}  # fmt: skip


@pytest.mark.slow
def test_two_processes_learn_as_one(tmp_path):
    finish(start(tmp_path / "one", processes=1, **OPTIONS))
    finish(start(tmp_path / "two", **OPTIONS))
    for split in ("train", "valid"):
        one, two = records(tmp_path / "one", split), records(tmp_path / "two", split)
        assert len(one) == len(two) > 0
        for a, b in zip(one, two, strict=True):
            assert b == pytest.approx(a, rel=1e-5, abs=1e-5)
    one, two = (read_tensors(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    for name, tensor in one.items():
        torch.testing.assert_close(two[name], tensor, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_two_processes_stop_together_and_resume(tmp_path):
    options = {**OPTIONS, "dropout": 0.3, "accumulate": 1}
    finish(start(tmp_path / "whole", **options))
    process = start(tmp_path / "parts", pause=0.1, **options)
    wait_for_step(tmp_path / "parts", 5, lambda: process.poll() is None)
    os.kill(process.pid, signal.SIGTERM)
    process.communicate(timeout=100)
    assert process.returncode != 0
    last = records(tmp_path / "parts")[-1]["step"]
    assert Checkpoints(tmp_path / "parts" / "checkpoints").steps()[-1] == last < OPTIONS["max_steps"]
    finish(start(tmp_path / "parts", resume=True, **options))
    assert records(tmp_path / "parts") == records(tmp_path / "whole"), "each process has its own dropout back"


@pytest.mark.slow
def test_two_launchers_are_one_training(tmp_path):
    """As on two machines with a shared disk, each with its own torchrun."""
    options = {**OPTIONS, "max_steps": 7, "validate_every": 5, "accumulate": 1}
    finish(start(tmp_path / "one", processes=1, **options))
    port = free_port()
    nodes = [start(tmp_path / "two", port=port, processes=1, nodes=2, node=node, **options) for node in range(2)]
    for node in nodes:
        finish(node)
    for a, b in zip(records(tmp_path / "one"), records(tmp_path / "two"), strict=True):
        assert b == pytest.approx(a, rel=1e-5, abs=1e-5)


SHARDED = {
    **OPTIONS,
    "sharding": "fsdp",
    "average": "ema",
    "average_decay": 0.7,
    "weight_decay": 0.1,
    "optimiser": "adamw",
}


@pytest.mark.slow
def test_sharded_training_resumes_with_other_numbers_of_processes(tmp_path):
    finish(start(tmp_path / "one", processes=1, **SHARDED))
    parts = tmp_path / "parts"
    for steps, processes in ((11, 2), (23, 3), (31, 1), (40, 2)):
        options = {**SHARDED, "max_steps": steps, "checkpoint_every": 1}
        finish(start(parts, processes=processes, resume=steps > 11, **options))
        whole = read_tensors(Checkpoints(parts / "checkpoints").path(steps) / "optimiser.safetensors")
        assert all(tensor.isfinite().all() for tensor in whole.values())
    assert [record["step"] for record in records(parts)] == list(range(1, 41))
    for a, b in zip(records(tmp_path / "one"), records(parts), strict=True):
        assert b == pytest.approx(a, rel=1e-5, abs=1e-5)
    of_one, of_parts = ({r["step"]: r for r in records(folder, "valid")} for folder in (tmp_path / "one", parts))
    assert of_parts[20] == pytest.approx(of_one[20], rel=1e-5, abs=1e-5)
    weights, others = (Checkpoints(folder / "checkpoints").load(40) for folder in (tmp_path / "one", parts))
    for name, tensor in weights.average.items():
        torch.testing.assert_close(others.average[name], tensor, rtol=1e-4, atol=1e-5)
    for number, values in weights.optimiser["state"].items():
        for name, tensor in values.items():
            torch.testing.assert_close(others.optimiser["state"][number][name], tensor, rtol=1e-3, atol=1e-5)


@pytest.mark.slow
def test_sharded_training_resumes_bit_for_bit_with_the_same_number(tmp_path):
    options = {**SHARDED, "dropout": 0.3, "accumulate": 1, "max_steps": 19}
    finish(start(tmp_path / "whole", **options))
    finish(start(tmp_path / "parts", **{**options, "max_steps": 7, "checkpoint_every": 7}))
    finish(start(tmp_path / "parts", resume=True, **options))
    assert records(tmp_path / "parts") == records(tmp_path / "whole")
    first, second = (read_tensors(tmp_path / name / "model.safetensors") for name in ("whole", "parts"))
    assert all(torch.equal(second[name], tensor) for name, tensor in first.items())
