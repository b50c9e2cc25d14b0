import errno
import os

import pytest

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
    log.write({"step": 1})
    log.close()
    log.begin(0)
    log.close()
    assert read_metrics(log.path) == []


def test_what_is_not_finite_is_null(tmp_path):
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.begin(0)
    log.write({"step": 1, "loss": float("nan"), "norm": float("inf"), "tokens": 3})
    log.close()
    assert log.path.read_text() == '{"step": 1, "loss": null, "norm": null, "tokens": 3}\n'


def test_a_log_that_is_not_there_is_empty(tmp_path):
    assert read_metrics(tmp_path / "none.jsonl") == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_is_named(tmp_path):
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.begin(0)
    log.close()
    log._file = open("/dev/full", "a")  # noqa: SIM115
    with pytest.raises(ArtifactError, match=r"metrics.jsonl: No space left") as caught:
        log.write({"step": 1})
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
