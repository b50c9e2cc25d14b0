"""`saccade train` is told to stop before its first step."""

import os
import signal
import subprocess
import sys

import pytest

from tests.commands.conftest import PAIRS

SMALL = [
    "--task.source.tokeniser=char",
    "--task.metrics=[exact_match]",
    "--model={class: rnnsearch, embedding_dim: 7, hidden_dim: 11}",
    "--trainer={max_steps: 2, batch_tokens: 130, validate_examples: 3}",
]


def write_pairs(path) -> str:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS))
    return str(path)


@pytest.mark.parametrize(
    ("place", "begun", "number"),
    [
        ("saccade.runs.splitting.choose_held_out", False, signal.SIGTERM),
        ("saccade.tasks.generation.task.Generation.fit", False, signal.SIGINT),
        ("saccade.runs.preparation.save_task", True, signal.SIGTERM),
        ("saccade.runs.preparation.store", False, signal.SIGINT),
        ("saccade.runs.plan.Plan.build", True, signal.SIGTERM),
    ],
)
def test_a_signal_before_the_first_step_loses_nothing(
    place, begun, number, call, tmp_path, monkeypatch, request
) -> None:
    output = tmp_path / "run"
    command = ["train", *SMALL, "--data", write_pairs(tmp_path / "pairs.tsv"), "--output", str(output)]
    interrupting = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, interrupting))
    handler = signal.getsignal(signal.SIGTERM)
    with monkeypatch.context() as patched:
        patched.setattr(place, lambda *_, **__: os.kill(os.getpid(), number))
        code, out, err = call(*command)
    assert (code, out) == (130, "")
    assert "\nInterrupted before " in err
    assert ("--resume" in err) == begun == output.exists()
    assert signal.getsignal(signal.SIGTERM) is handler
    again = ["train", "--resume", str(output)] if begun and number == signal.SIGTERM else command
    code, out, err = call(*again)
    assert code == 0, err
    assert call("predict", str(output), given="su\n")[0] == 0


SLOW = """
import sys, time
from saccade.cli import main
from saccade.data.corpus import Corpus

def read(*_, **__):
    print("reading", flush=True)
    time.sleep(120)

Corpus.read = read
sys.exit(main(sys.argv[1:]))
"""


def test_a_signal_while_the_data_are_read(tmp_path) -> None:
    data = ["--data", write_pairs(tmp_path / "pairs.tsv"), "--output", str(tmp_path / "run")]
    command = [sys.executable, "-c", SLOW, "train", *SMALL, *data]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        begun = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert begun == "reading\n", err
    assert (process.returncode, out) == (130, "")
    assert "run the same command again" in err
    assert "Traceback" not in err
    assert not (tmp_path / "run").exists()


def test_a_run_without_an_output_is_named_after_its_configuration(call, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("copy", "translation/rnnsearch", "my.yaml")[0] == 0
    command = ["train", "my.yaml", *SMALL, "--trainer.metric=loss", "--data.train", write_pairs(tmp_path / "pairs.tsv")]
    code, _, err = call(*command)
    assert code == 0, err
    assert "Writing the run to runs/my; use --output to choose another folder." in err
    assert call("predict", "runs/my", given="su\n")[0] == 0
    code, _, err = call(*command)
    assert code != 0
    assert "runs/my" in err
