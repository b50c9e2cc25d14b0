import errno
import os
import pickletools

import pytest
import torch

from saccade import artifacts
from saccade.artifacts import ArtifactError
from saccade.training import Checkpoint, Checkpoints


def checkpoint(step, average=False):
    weights = {"w": torch.full((2, 3), float(step)), "n": torch.tensor(step)}
    optimiser = {"state": {0: {"step": torch.tensor(1.0), "m": torch.ones(3), "k": 5}}, "param_groups": [{"lr": 0.1}]}
    state = {"position": {"step": step}, "random": [{"torch": "00ff"}]}
    return Checkpoint(
        step, weights, {"w": torch.zeros(2, 3), "n": torch.tensor(step)} if average else None, optimiser, state
    )


@pytest.mark.parametrize("average", [False, True])
def test_everything_comes_back(tmp_path, average):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(checkpoint(5, average))
    loaded = checkpoints.latest()
    assert loaded.step == 5
    assert torch.equal(loaded.weights["w"], torch.full((2, 3), 5.0))
    assert loaded.optimiser["state"][0]["k"] == 5
    assert torch.equal(loaded.optimiser["state"][0]["m"], torch.ones(3))
    assert loaded.state == {"position": {"step": 5}, "random": [{"torch": "00ff"}]}
    assert loaded.chosen is (loaded.average if average else loaded.weights)
    assert (loaded.average is not None) == average


def test_there_may_be_none(tmp_path):
    assert Checkpoints(tmp_path / "nowhere").latest() is None


@pytest.mark.parametrize("file", ["model.safetensors", "optimiser.safetensors", "state.json", "checksums.json"])
def test_a_torn_one_is_passed_over_with_a_warning(tmp_path, file):
    checkpoints = Checkpoints(tmp_path)
    for step in (3, 7):
        checkpoints.save(checkpoint(step))
    path = checkpoints.path(7) / file
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.warns(UserWarning, match=f"{file} is damaged.*Trying the checkpoint before step-00000007"):
        assert checkpoints.latest().step == 3


def test_only_torn_ones_are_an_error(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(checkpoint(3))
    (checkpoints.path(3) / "state.json").unlink()
    with pytest.raises(ArtifactError, match=r"None of the 1 checkpoints.*incomplete: state.json is missing"):
        checkpoints.latest()


@pytest.mark.parametrize("file", ["model.safetensors", "optimiser.safetensors", "state.json", "checksums.json"])
def test_a_full_disk_names_the_last_good_one_and_leaves_it(tmp_path, monkeypatch, file):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(checkpoint(3))
    real = artifacts.folders.write_synced

    def write(path, data):
        if path.name == file:
            path.write_bytes(data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, data)

    monkeypatch.setattr(artifacts.folders, "write_synced", write)
    with pytest.raises(
        ArtifactError, match=r"step 7: No space left on device.*last good checkpoint is .*step-00000003"
    ):
        checkpoints.save(checkpoint(7))
    assert checkpoints.latest().step == 3
    assert os.listdir(tmp_path) == ["step-00000003"]


def test_the_last_and_the_pinned_stay(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    for step in (2, 4, 6, 8, 10):
        checkpoints.save(checkpoint(step))
    checkpoints.prune(keep=2, pinned={4})
    assert checkpoints.steps() == [4, 8, 10]
    checkpoints.drop_after(8)
    assert checkpoints.steps() == [4, 8]


def test_what_a_crash_left_is_tidied(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(checkpoint(2))
    (tmp_path / ".step-00000004.partial").mkdir()
    (tmp_path / ".step-00000004.partial" / "model.safetensors").write_bytes(b"torn")
    assert checkpoints.steps() == [2]
    checkpoints.drop_after(2)
    assert os.listdir(tmp_path) == ["step-00000002"]


def test_nothing_in_it_is_a_pickle(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    for path in checkpoints.save(checkpoint(2, average=True)).iterdir():
        assert path.suffix in (".json", ".safetensors")
        with pytest.raises(ValueError, match=r".*"):
            list(pickletools.genops(path.read_bytes()))


def test_what_json_cannot_hold_is_refused(tmp_path):
    with pytest.raises(TypeError, match="does not fit into a checkpoint"):
        Checkpoints(tmp_path).save(checkpoint(2)._replace(state={"x": object()}))
