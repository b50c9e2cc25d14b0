"""Two trainings in one folder: one works, the other is told who holds it."""

import os
import signal
import subprocess
import sys

ARGUMENTS = [
    "--task.source={class: text, tokeniser: char}",
    "--task.metrics=[exact_match]",
    "--model={class: rnnsearch, embedding_dim: 7, hidden_dim: 11}",
    "--trainer={max_steps: 100000, batch_tokens: 100, validate_examples: 0, log_every: 1, validate_every: 5}",
    "--data.held_out=0.2",
    "--output=run",
]


def start(folder, *arguments: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "saccade", "train", *arguments],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_the_second_is_told_who_holds_the_folder(tmp_path) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"{'ab' * n}\t{'ba' * n}\n" for n in range(1, 30)))
    first = start(tmp_path, "--data.train=pairs.tsv", *ARGUMENTS)
    try:
        while not (line := first.stderr.readline()).startswith("step 5  validation"):
            assert line, "the first training ended early"
        again = start(tmp_path, "--resume=run")
        told = again.communicate(timeout=120)[1]
        assert again.returncode == 2, told
        assert str(first.pid) in told
        assert "Traceback" not in told
        assert first.poll() is None
    finally:
        first.send_signal(signal.SIGTERM)
        rest = first.communicate(timeout=120)[1]
    assert first.returncode == 130, rest
