"""Whole trainings with models that are split among two processes, against one process."""

import os
import subprocess
import sys

import pytest

from saccade.training.metrics import read_metrics
from tests.ports import free_port

MODELS = {
    "rnnsearch": "{class: rnnsearch, embedding_dim: 7, hidden_dim: 11, dropout: 0.0}",
    "luong": "{class: luong, embedding_dim: 7, hidden_dim: 11, dropout: 0.0}",
    "transformer": "{class: transformer, dim: 12, num_heads: 3, feed_forward_dim: 17, encoder_layers: 2, dropout: 0.0}",
}


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_two_halves_of_a_model_learn_as_a_whole_one(model, tmp_path) -> None:
    arguments = [
        "-m", "saccade", "train", "--data.train=dates:train:300", "--data.valid=dates:valid:20",
        "--task.source={class: text, tokeniser: char}", f"--model={MODELS[model]}",
        "--trainer={max_steps: 5, batch_tokens: 400, validate_every: 3, validate_examples: 3, sharding: fsdp}",
    ]  # fmt: skip
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-addr", "127.0.0.1"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    for name, launcher in {"one": [], "two": [*torchrun, "--master-port", str(free_port())]}.items():
        command = [sys.executable, *launcher, *arguments, "--output", str(tmp_path / name)]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    one, two = (list(read_metrics(tmp_path / name / "metrics.jsonl")) for name in ("one", "two"))
    assert len(one) == len(two) == 7
    for a, b in zip(one, two, strict=True):
        assert b["loss"] == pytest.approx(a["loss"], rel=1e-4)
