"""Every write, sync, rename and removal fails in turn, or is the last thing that the process does.

Afterwards there is the old state or the new one, and a training resumes to the same weights and log, bit for bit.
"""

import itertools
import os
import random
import shutil
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import pytest
import torch

from saccade.artifacts import ArtifactError, restore_folders, verify, write_file, write_folder
from saccade.training import Checkpoint, Checkpoints, read_metrics
from saccade.training.metrics import MetricsLog
from tests.hostile.counting import SECONDS
from tests.hostile.operations import FAULTS, Operations, count, killed, strike
from tests.training.processes import records
from tests.training.run_toy import train

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="resolves descriptors under /proc")
TOY = {"max_steps": 5, "validate_every": 2, "keep": 2, "average": "ema", "schedule": "plateau", "device": "cpu"}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Before the undisturbed training, which several threads would round otherwise."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def checkpoint(step):
    optimiser = {"state": {0: {"m": torch.ones(3)}}, "param_groups": [{"lr": 0.1}]}
    return Checkpoint(step, {"w": torch.full((2, 3), float(step))}, None, optimiser, {"note": step})


def every(work, make, folder):
    """All (operation, fault) of some work, or a few of them."""
    make()
    plan = [(at, fault) for at in range(len(count(work, folder))) for fault in FAULTS]
    return plan if SECONDS else random.Random(5).sample(plan, 16)


def test_a_file_is_old_or_new(tmp_path):
    path = tmp_path / "a.txt"

    def make():
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
        write_file(path, "old")

    def work():
        write_file(path, "new and longer")

    for at, fault in every(work, make, tmp_path):
        make()
        error = strike(work, tmp_path, at=at, fault=fault)
        assert path.read_text() in ("old", "new and longer")
        if isinstance(error, OSError):
            assert isinstance(error, ArtifactError)
            assert str(path) in str(error)
        write_file(path, "later")
        assert path.read_text() == "later"
        assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("replaces", [False, True])
def test_a_folder_is_old_or_new(tmp_path, replaces):
    path = tmp_path / "made"

    def make():
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
        if replaces:
            write_folder(path, {"a": b"old"})

    def work():
        write_folder(path, {"a": b"new", "inner/b": b"two"})

    for at, fault in every(work, make, tmp_path):
        make()
        error = strike(work, tmp_path, at=at, fault=fault)
        assert not isinstance(error, OSError) or isinstance(error, ArtifactError)
        restore_folders(tmp_path)
        if replaces or path.exists():
            verify(path, required=["a"])
            assert (path / "a").read_bytes() in (b"old", b"new")
        if error is None:
            assert (path / "a").read_bytes() == b"new"
        work()
        restore_folders(tmp_path)
        assert os.listdir(tmp_path) == ["made"]


def test_checkpoints_are_all_whole(tmp_path):
    checkpoints = Checkpoints(tmp_path / "checkpoints")

    def make():
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
        for step in (1, 2):
            checkpoints.save(checkpoint(step))

    def work():
        checkpoints.save(checkpoint(3))
        checkpoints.prune(keep=1, pinned={1})

    for at, fault in every(work, make, tmp_path):
        make()
        error = strike(work, tmp_path, at=at, fault=fault)
        latest = checkpoints.latest()
        assert latest.step in (2, 3)
        assert torch.equal(latest.weights["w"], torch.full((2, 3), float(latest.step)))
        if isinstance(error, ArtifactError) and "Could not save" in str(error):
            assert f"The last good checkpoint is {checkpoints.path(latest.step)}" in str(error)
        for step in checkpoints.steps():
            assert checkpoints.load(step).state == {"note": step}
        assert 1 in checkpoints.steps()  # pinned
        work()
        assert checkpoints.steps() == [1, 3]


def test_a_log_keeps_every_record_that_was_written(tmp_path):
    path = tmp_path / "metrics.jsonl"

    def log(begin, last):
        metrics = MetricsLog(path)
        try:
            metrics.begin(begin)
            for step in range(begin + 1, last + 1):
                metrics.write({"split": "train", "step": step})
                metrics.sync()
        finally:
            metrics.close()

    def make():
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
        log(0, 3)

    def work():
        log(3, 6)

    for at, fault in every(work, make, tmp_path):
        make()
        error = strike(work, tmp_path, at=at, fault=fault)
        assert not isinstance(error, OSError) or "metrics.jsonl" in str(error)
        steps = [record["step"] for record in read_metrics(path)]
        assert steps == list(range(1, len(steps) + 1))
        assert len(steps) >= 3
        log(len(steps), 6)
        assert [record["step"] for record in read_metrics(path)] == [1, 2, 3, 4, 5, 6]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    return folder / "run", count(lambda: train(folder / "run", **TOY), folder)


def choose(log):
    """Which operations of a training fail: some of every kind, or all in random order, again and again."""
    plan = [(at, fault) for at in range(len(log)) for fault in FAULTS]
    chance = random.Random(5)
    chance.shuffle(plan)
    if SECONDS:
        return itertools.cycle(plan)
    kinds, chosen = Counter(), []
    for at, fault in plan:
        kind = log[at][0]
        if not kinds[kind] and kinds[fault] < 2:
            kinds[kind] += 1
            kinds[fault] += 1
            chosen.append((at, fault))
    return chosen


def check_equal(output, reference, place):
    """Resumes a training, which must then be as if nothing had happened to it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is damaged, so nothing is passed over
        train(output, resume=True, **TOY)
    assert (output / "model.safetensors").read_bytes() == (reference / "model.safetensors").read_bytes(), place
    for split in ("train", "valid"):
        assert records(output, split) == records(reference, split), place


def test_a_training_resumes_exactly_after_any_fault(tmp_path, undisturbed, cases):
    reference, log = undisturbed
    tried = {
        kind: cases(f"trainings resumed after {kind}", seconds=0.0, least=0, wanted=50)
        for kind in ("a kill while writing", "a failed write")
    }
    for at, fault in choose(log):
        case = tried["a kill while writing" if fault == "kill" else "a failed write"]
        if SECONDS and not any(each.more() for each in tried.values()):
            break
        output = tmp_path / "run"
        shutil.rmtree(output, ignore_errors=True)
        place = f"{fault} at operation {at}: {log[at]}"
        with case.case(place):
            error = strike(lambda: train(output, **TOY), tmp_path, at=at, fault=fault)  # noqa: B023 (called at once)
            place = f"{place}, which gave {error!r}"
            assert not isinstance(error, OSError) or isinstance(error, ArtifactError), place
            check_equal(output, reference, place)
        case.outcomes["equal"] += 1
    assert sum(each.outcomes.total() for each in tried.values()) >= 6


def test_a_training_resumes_exactly_after_kills_at_any_time(tmp_path, undisturbed, cases):
    """SIGKILL from outside, after a random time; as often as it takes until the training has ended."""
    chance, tried = random.Random(5), cases("trainings resumed after kill -9", least=2, most=2, wanted=50)
    began = time.monotonic()
    train(tmp_path / "timed", **TOY)
    usual = time.monotonic() - began
    while tried.more():
        output = tmp_path / "run"
        shutil.rmtree(output, ignore_errors=True)
        after = chance.uniform(0.0, usual)
        with tried.case(f"kill -9 after {after:.3f} s"):
            ended = not killed(lambda: train(output, **TOY), after)  # noqa: B023 (called at once)
            if not ended and output.exists() and chance.random() < 0.5:  # and again, while it resumes
                ended = not killed(lambda: train(output, resume=True, **TOY), chance.uniform(0.0, usual))  # noqa: B023
            check_equal(output, undisturbed[0], f"killed after {after:.3f} s")
        tried.outcomes["ended before" if ended else "equal"] += 1


def check_order(log):
    """Data before names: each file is synced before it, or a folder around it, gets its name, and the name after."""
    for place, (name, path, target) in enumerate(log):
        if name in ("rename", "replace") and ".partial" in Path(path).name:
            before, after = log[:place], log[place + 1 :]
            begun = max((i for i, (n, p, t) in enumerate(before) if t == target), default=0)
            written = {p for n, p, _ in before[begun:] if n == "write" and (p == path or p.startswith(path + "/"))}
            assert written, f"{path} was renamed but not written"
            for file in written:
                last = max(i for i, (n, p, _) in enumerate(before) if n == "write" and p == file)
                assert ("fsync", file, None) in before[last:], f"{file} was not synced before {target}"
                if file != path:  # a folder, whose names must be durable as well
                    created = max(i for i, (n, p, _) in enumerate(before) if n == "open" and p == file)
                    assert ("fsync", str(Path(file).parent), None) in before[created:], f"the folder of {file}"
            assert ("fsync", str(Path(target).parent), None) in after, f"the name of {target} was not synced"
            following = next(i for i, entry in enumerate(after) if entry == ("fsync", str(Path(target).parent), None))
            assert not any(n in ("rename", "replace") for n, _, _ in after[:following]), f"{target} was synced late"
        if name == "mkdir" and ".partial" not in path:
            assert ("fsync", str(Path(path).parent), None) in log[place:], f"the name of {path} was not synced"


def test_files_are_synced_before_their_names(tmp_path):
    folder = tmp_path.resolve()
    with Operations(folder) as operations:
        write_file(folder / "a.txt", "new")
    partial = str(folder / ".a.txt.partial")
    assert [entry for entry in operations.log if entry[0] != "unlink"] == [
        ("open", partial, None),
        ("write", partial, None),
        ("flush", partial, None),
        ("fsync", partial, None),
        ("replace", partial, str(folder / "a.txt")),
        ("fsync", str(folder), None),
    ]
    with Operations(folder) as operations:
        write_folder(folder / "new" / "made", {"a": b"one", "inner/b": b"two"})
        write_folder(folder / "new" / "made", {"a": b"two"})
    check_order(operations.log)
    assert sum(name == "rename" for name, *_ in operations.log) == 3


def test_a_training_syncs_everything_in_order(undisturbed):
    output, log = undisturbed
    check_order(log)
    metrics = str(output.resolve() / "metrics.jsonl")
    saved = [i for i, (n, _, target) in enumerate(log) if n == "rename" and Path(target).name.startswith("step-")]
    assert len(saved) >= 3
    for place in saved:  # the log is never behind a checkpoint
        last = max(i for i, (n, p, _) in enumerate(log[:place]) if n == "write" and p == metrics)
        assert ("fsync", metrics, None) in log[last:place]


def test_a_wrong_order_is_seen(tmp_path):
    right = [
        ("open", "/r/.a.partial", None),
        ("write", "/r/.a.partial", None),
        ("fsync", "/r/.a.partial", None),
        ("replace", "/r/.a.partial", "/r/a"),
        ("fsync", "/r", None),
    ]
    check_order(right)
    for missing in (2, 4):
        with pytest.raises(AssertionError, match="was not synced"):
            check_order([entry for place, entry in enumerate(right) if place != missing])
