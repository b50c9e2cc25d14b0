"""Crashes and interruptions of a real process."""

import os
import signal

import pytest

from saccade.training import Checkpoints
from tests.training.processes import finish, records, start, wait_for_step
from tests.training.run_toy import train

OPTIONS = {
    "max_steps": 60, "validate_every": 9, "checkpoint_every": 5, "optimiser": "adamw", "schedule": "plateau",
    "average": "ema", "accumulate": 2,
}  # fmt: skip


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    output = tmp_path_factory.mktemp("uninterrupted")
    finish(start(output, **OPTIONS), output)
    return output


def same(output, uninterrupted):
    assert records(output) == records(uninterrupted)
    assert records(output, "valid") == records(uninterrupted, "valid")
    assert (output / "model.safetensors").read_bytes() == (uninterrupted / "model.safetensors").read_bytes()


def test_kill_9_and_resume_equals_an_uninterrupted_training_bit_for_bit(tmp_path, uninterrupted):
    resume = False
    for step in (3, 23):  # before the first checkpoint, and between two of them
        process = start(tmp_path, resume=resume, pause=0.03, **OPTIONS)
        wait_for_step(tmp_path, step, process.is_alive)
        os.kill(process.pid, signal.SIGKILL)
        finish(process, tmp_path, expected=-signal.SIGKILL)
        assert max(r["step"] for r in records(tmp_path)) < OPTIONS["max_steps"]
        resume = True
    finish(start(tmp_path, resume=True, **OPTIONS), tmp_path)
    same(tmp_path, uninterrupted)


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_signal_saves_and_exits_with_130(tmp_path, uninterrupted, number):
    process = start(tmp_path, pause=0.03, **OPTIONS)
    wait_for_step(tmp_path, 12, process.is_alive)
    os.kill(process.pid, number)
    message = finish(process, tmp_path, expected=130)
    last = records(tmp_path)[-1]["step"]
    assert last < OPTIONS["max_steps"]
    assert Checkpoints(tmp_path / "checkpoints").steps()[-1] == last
    assert f"Interrupted after step {last}" in message
    finish(start(tmp_path, resume=True, **OPTIONS), tmp_path)
    same(tmp_path, uninterrupted)


def test_a_signal_in_a_validation_leaves_it_for_the_resumption(tmp_path, monkeypatch):
    from tests.tasks.toy import NeighbourSums

    options = {"max_steps": 9, "validate_every": 3}
    train(tmp_path / "a", **options)
    evaluate, calls = NeighbourSums.evaluate, []

    def interrupted(self, model, some, **others):
        calls.append(len(calls))
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return evaluate(self, model, some, **others)

    monkeypatch.setattr(NeighbourSums, "evaluate", interrupted)
    with pytest.raises(SystemExit) as caught:
        train(tmp_path / "b", **options)
    assert caught.value.code == 130
    assert [r["step"] for r in records(tmp_path / "b", "valid")] == [3]
    assert Checkpoints(tmp_path / "b" / "checkpoints").steps() == [3, 6]
    train(tmp_path / "b", resume=True, **options)
    same(tmp_path / "b", tmp_path / "a")
