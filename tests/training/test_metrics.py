import errno
import json
import os
import tempfile
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.artifacts import ArtifactError
from saccade.training.metrics import MetricsLog, read_metrics


def test_the_log_is_cut_back_to_the_checkpoint_and_goes_on(tmp_path):
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.begin(0)
    for step in (1, 2, 3):
        log.write({"split": "train", "step": step, "loss": step / 3})
    log.write({"split": "valid", "step": 3, "loss": 1.0})
    log.close()
    with open(log.path, "a") as file:
        file.write('{"split": "train", "step": 4, "lo')
    log.begin(2)
    log.write({"split": "train", "step": 3, "loss": 7.0})
    log.sync()
    log.close()
    assert [(r["step"], r["loss"]) for r in read_metrics(log.path)] == [(1, 1 / 3), (2, 2 / 3), (3, 7.0)]


def test_a_new_training_begins_a_new_log(tmp_path):
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.begin(0)
    log.write({"split": "train", "step": 1})
    log.close()
    log.begin(0)
    log.close()
    assert read_metrics(log.path) == []


def test_what_is_not_finite_is_null(tmp_path):
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.begin(0)
    log.write({"split": "train", "step": 1, "loss": float("nan"), "norm": float("inf"), "tokens": 3})
    log.close()
    assert log.path.read_text() == '{"split": "train", "step": 1, "loss": null, "norm": null, "tokens": 3}\n'


def test_a_log_that_is_not_there_is_empty(tmp_path):
    assert read_metrics(tmp_path / "none.jsonl") == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_is_named(tmp_path):
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.begin(0)
    log.close()
    log._file = open("/dev/full", "a")  # noqa: SIM115
    with pytest.raises(ArtifactError, match=r"metrics.jsonl: No space left") as caught:
        log.write({"split": "train", "step": 1})
    assert caught.value.errno == errno.ENOSPC
    log.close()


def test_a_validation_that_is_repeated_is_there_once(tmp_path):
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.begin(0)
    for split, step in (("train", 1), ("valid", 1), ("train", 2), ("valid", 2)):
        log.write({"split": split, "step": step})
    log.close()
    log.begin(2, validated=1)
    log.close()
    assert [(r["split"], r["step"]) for r in read_metrics(log.path)] == [("train", 1), ("valid", 1), ("train", 2)]


def lines(*steps):
    return [json.dumps({"split": "train", "step": step, "loss": 1 / step}).encode() for step in steps]


DAMAGED = {
    "no JSON": b'{"split": "train", "st',
    "bytes": b"\xff\xfe\x00",
    "zeros": b"\0" * 300,
    "empty": b"",
    "no object": b"[1]",
    "no step": b'{"split": "train", "loss": 1.0}',
    "no split": b'{"step": 2, "loss": 1.0}',
    "step a text": b'{"split": "train", "step": "2"}',
    "step not finite": b'{"split": "train", "step": NaN}',
    "step infinite": b'{"split": "train", "step": 1e999}',
    "step negative": b'{"split": "train", "step": -1}',
    "step true": b'{"split": "train", "step": true}',
    "step of 5000 digits": b'{"split": "train", "step": ' + b"9" * 5000 + b"}",
    "split a list": b'{"split": [], "step": 2}',
    "loss a text": b'{"split": "train", "step": 2, "loss": "x"}',
    "deep": b"[" * 100_000,
    "a key twice": b'{"split": "train", "step": 2, "step": 3}',
    "long": b" " * (2**20 + 5),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_line_costs_only_itself(tmp_path, name):
    path = tmp_path / "metrics.jsonl"
    content = b"\n".join([*lines(1), DAMAGED[name], *lines(3, 4), b""])
    path.write_bytes(content)
    with pytest.warns(UserWarning, match=r"metrics.jsonl has 1 damaged line \(2\); only the other lines are read"):
        assert [r["step"] for r in read_metrics(path)] == [1, 3, 4]
    log = MetricsLog(path)
    with pytest.warns(UserWarning, match=r"1 damaged line \(2\); the other lines are kept.*metrics.jsonl.damaged"):
        log.begin(3)
    log.write({"split": "train", "step": 4, "loss": 0.0})
    log.close()
    assert [r["step"] for r in read_metrics(path)] == [1, 3, 4]
    assert (tmp_path / "metrics.jsonl.damaged").read_bytes() == content


def test_several_damaged_files_are_all_kept(tmp_path):
    path, log = tmp_path / "metrics.jsonl", MetricsLog(tmp_path / "metrics.jsonl")
    for number in range(3):
        path.write_bytes(b"x\n" * 12 + str(number).encode() + b"\n")
        with pytest.warns(UserWarning, match=r"13 damaged lines \(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ...\)"):
            log.begin(0)
        log.close()
    kept = [path.with_name(f"metrics.jsonl.damaged{end}") for end in ("", ".2", ".3")]
    assert [k.read_bytes().split()[-1] for k in kept] == [b"0", b"1", b"2"]


@pytest.mark.parametrize("cut", range(1, 20))
def test_a_last_line_that_a_crash_cut_is_no_damage(tmp_path, cut, recwarn):
    path = tmp_path / "metrics.jsonl"
    one, two = lines(1, 2)
    path.write_bytes(one + b"\n" + two[:cut])
    assert [r["step"] for r in read_metrics(path)] == [1]
    log = MetricsLog(path)
    log.begin(9)
    log.close()
    assert path.read_bytes() == one + b"\n"
    assert not recwarn.list
    assert os.listdir(tmp_path) == ["metrics.jsonl"]


@given(data=st.data())
def test_any_change_of_one_line_costs_at_most_that_line(data):
    whole = lines(*range(1, 8))
    place = data.draw(st.integers(0, 6))
    changed = [*whole[:place], data.draw(st.binary(max_size=40)).replace(b"\n", b""), *whole[place + 1 :]]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True):
        path = Path(folder) / "metrics.jsonl"
        path.write_bytes(b"\n".join([*changed, b""]))
        steps = [record["step"] for record in read_metrics(path)]
    assert [step for step in steps if step != place + 1] == [step for step in range(1, 8) if step != place + 1]


def test_a_log_that_cannot_be_opened_is_an_artifact_error(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    log = MetricsLog(tmp_path / "metrics.jsonl")
    monkeypatch.setattr("saccade.training.metrics.open", full, raising=False)
    with pytest.raises(ArtifactError, match=r"Could not open .*metrics\.jsonl: No space left"):
        log.begin(0)
