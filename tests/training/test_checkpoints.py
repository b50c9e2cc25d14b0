import errno
import json
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
    with pytest.raises(ArtifactError, match=r"The only checkpoint.*cannot be used.*incomplete: state.json is missing"):
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


def reseal(path):
    artifacts.seal(path, [file.name for file in path.iterdir() if file.name != "checksums.json"])


def without(key):
    return lambda state: {name: value for name, value in state.items() if name != key}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (without("step"), "state.json is damaged: step is missing"),
        (without("optimiser"), "optimiser is missing"),
        (lambda s: [s], "its content is a list, not an object"),
        (lambda s: {**s, "step": 3}, "step is 3, but the folder is step-00000007"),
        (lambda s: {**s, "step": "7"}, 'step is "7", not a whole number'),
        (lambda s: {**s, "optimiser": []}, "optimiser is a list, not an object"),
        (lambda s: {**s, "optimiser": {"numbers": {}}}, "optimiser.param_groups is missing"),
        (
            lambda s: {**s, "optimiser": {**s["optimiser"], "numbers": {"x": 1}}},
            "optimiser.x is not a parameter's number",
        ),
        (lambda s: {**s, "optimiser": {**s["optimiser"], "numbers": {"9" * 5000 + ".k": 1}}}, "optimiser.999"),
        (lambda s: {**s, "optimiser": {**s["optimiser"], "param_groups": [7]}}, r"param_groups\[0\] is 7"),
        (
            lambda s: {**s, "optimiser": {**s["optimiser"], "param_groups": [{"betas": 7}]}},
            r"optimiser.param_groups\[0\].betas is 7, not a list",
        ),
    ],
)
def test_damage_under_right_sums_falls_back_too(tmp_path, change, complaint):
    checkpoints = Checkpoints(tmp_path)
    for step in (3, 7):
        checkpoints.save(checkpoint(step))
    path = checkpoints.path(7) / "state.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    reseal(path.parent)
    with pytest.warns(UserWarning, match=rf"{complaint}.*Trying the checkpoint before step-00000007"):
        assert checkpoints.latest().step == 3


def test_names_of_absurd_steps_are_not_ours(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(checkpoint(3))
    for name in ("step-99999999999999999999", "step-" + "9" * 240, "step-3", "step-٣٣٣٣٣٣٣٣", "step-0000000x"):
        (tmp_path / name).mkdir()
    (tmp_path / "step-00000009").write_text("a file")
    assert checkpoints.steps() == [3]
    assert checkpoints.latest().step == 3
    checkpoints.drop_after(2)
    assert checkpoints.steps() == []


def test_a_checkpoint_that_cannot_be_used_is_passed_over(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    for step in (3, 7):
        checkpoints.save(checkpoint(step))
    used = []

    def use(one):
        used.append(one.step)
        if one.step in refused:
            raise ArtifactError(f"{one.step} does not fit.")

    refused = {7}
    with pytest.warns(UserWarning, match="7 does not fit. Trying the checkpoint before step-00000007"):
        assert checkpoints.latest(use).step == 3
    assert used == [7, 3]
    refused = {7, 3}
    with pytest.warns(UserWarning, match="7"), pytest.raises(ArtifactError, match=r"None of the 2.*: 7 does not fit"):
        checkpoints.latest(use)
