import errno
import json
import os

import pytest
import torch
from torch import nn

from saccade import artifacts
from saccade.artifacts import (
    ArtifactError,
    load_weights,
    pack_tensors,
    read_tensors,
    restore_folders,
    save_weights,
    seal,
    set_weights,
    verify,
    weights_of,
    write_file,
    write_folder,
)


class Tied(nn.Module):
    def __init__(self, width=5):
        super().__init__()
        self.embedding = nn.Embedding(7, width)
        self.output = nn.Linear(width, 7)
        self.output.weight = self.embedding.weight
        self.register_buffer("seen", torch.tensor(3))
        self.register_buffer("scratch", torch.zeros(2), persistent=False)


@pytest.fixture
def full_disk(monkeypatch):
    """Lets some bytes through, and then has no space left."""

    def fill(after):
        real, written = os.fsync, [0]

        def fsync(descriptor):
            written[0] += os.fstat(descriptor).st_size
            if written[0] > after:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            real(descriptor)

        monkeypatch.setattr(artifacts.files.os, "fsync", fsync)

    return fill


def test_a_file_is_replaced(tmp_path):
    write_file(tmp_path / "a.txt", "old")
    write_file(tmp_path / "a.txt", "new")
    assert (tmp_path / "a.txt").read_text() == "new"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_full_disk_leaves_the_old_file(tmp_path, full_disk):
    write_file(tmp_path / "a.txt", "old")
    full_disk(after=2)
    with pytest.raises(
        ArtifactError, match=r"No space left on device.*could not write .*a.txt, its old content is intact"
    ) as caught:
        write_file(tmp_path / "a.txt", "newer")
    assert caught.value.errno == errno.ENOSPC
    assert (tmp_path / "a.txt").read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_folder_appears_whole_and_sealed(tmp_path):
    path = write_folder(tmp_path / "made", {"a": b"one", "b": lambda: b"two"})
    verify(path, required=["a"])
    assert sorted(os.listdir(path)) == ["a", "b", "checksums.json"]
    assert os.listdir(tmp_path) == ["made"]


def test_a_full_disk_leaves_the_old_folder(tmp_path, full_disk):
    path = write_folder(tmp_path / "made", {"a": b"one"})
    full_disk(after=5)
    with pytest.raises(ArtifactError, match="No space left"):
        write_folder(path, {"a": b"four", "b": b"five"})
    verify(path, required=["a"])
    assert (path / "a").read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["made"]


@pytest.mark.parametrize("crash", [1, 2])
def test_a_crash_at_any_rename_leaves_one_whole_folder(tmp_path, monkeypatch, crash):
    path = write_folder(tmp_path / "made", {"a": b"one"})
    real, calls = os.rename, [0]

    def rename(*arguments):
        calls[0] += 1
        if calls[0] == crash:
            raise KeyboardInterrupt  # like a kill: no handler for it runs
        real(*arguments)

    monkeypatch.setattr(artifacts.folders.os, "rename", rename)
    with pytest.raises(KeyboardInterrupt):
        write_folder(path, {"a": b"two"})
    monkeypatch.undo()
    restore_folders(tmp_path)
    verify(path, required=["a"])
    assert (path / "a").read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["made"]


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda path: (path / "a").write_bytes(b"onE"), "a is damaged"),
        (lambda path: (path / "a").write_bytes(b"on"), "a is damaged"),
        (lambda path: (path / "a").unlink(), "incomplete: a is missing"),
        (lambda path: (path / "checksums.json").unlink(), "incomplete: checksums.json is missing"),
        (lambda path: (path / "checksums.json").write_bytes(b'{"a": '), "checksums.json is damaged"),
        (lambda path: (path / "checksums.json").write_bytes(b"[]"), "checksums.json is damaged"),
    ],
)
def test_damage_is_found(tmp_path, damage, complaint):
    path = write_folder(tmp_path / "made", {"a": b"one"})
    damage(path)
    with pytest.raises(ArtifactError, match=complaint):
        verify(path, required=["a"])


def test_files_that_stand_already_are_sealed(tmp_path):
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "words.json").write_text("{}")
    (tmp_path / "later.txt").write_text("not sealed")
    seal(tmp_path, ["task/words.json"])
    verify(tmp_path, required=["task/words.json"])
    assert list(json.loads((tmp_path / "checksums.json").read_text())) == ["task/words.json"]
    (tmp_path / "task" / "words.json").write_text("[]")
    with pytest.raises(ArtifactError, match=r"words.json is damaged"):
        verify(tmp_path, required=["task/words.json"])


def test_tensors_of_every_kind_come_back(tmp_path):
    tensors = {
        "half": torch.randn(3, 5).bfloat16(),
        "turned": torch.randn(3, 5).t(),
        "number": torch.tensor(7),
        "none": torch.zeros(0, 3),
        "flags": torch.tensor([True, False]),
    }
    write_file(tmp_path / "t.safetensors", pack_tensors(tensors))
    read = read_tensors(tmp_path / "t.safetensors")
    assert read.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert read[name].dtype == tensor.dtype
        assert torch.equal(read[name], tensor)


def test_a_torn_tensor_file_is_an_error(tmp_path):
    path = write_file(tmp_path / "t.safetensors", pack_tensors({"a": torch.randn(5)})[:-3])
    with pytest.raises(ArtifactError, match="damaged"):
        read_tensors(path)


def test_tied_weights_are_stored_once_and_stay_tied(tmp_path):
    model, other = Tied(), Tied()
    other.seen.fill_(11)
    assert sorted(weights_of(model)) == ["embedding.weight", "output.bias", "seen"]
    save_weights(model, tmp_path / "model.safetensors")
    load_weights(other, tmp_path / "model.safetensors")
    assert torch.equal(other.output.weight, model.embedding.weight)
    assert other.output.weight is other.embedding.weight
    assert other.seen == 3


def test_the_weights_of_another_model_are_refused():
    with pytest.raises(
        ArtifactError, match=r"missing: embedding.weight, output.bias, seen; not in the model: bias, weight"
    ):
        set_weights(Tied(), weights_of(nn.Linear(3, 2)))
    with pytest.raises(ArtifactError, match=r"embedding.weight has the shape \(7, 3\) there but \(7, 5\) in the model"):
        set_weights(Tied(), weights_of(Tied(width=3)))


def test_removing_a_folder_leaves_the_one_that_takes_its_place(tmp_path):
    (tmp_path / "made").mkdir()
    (tmp_path / ".made.partial").mkdir()
    (tmp_path / ".made.removed").mkdir()  # by a crash
    artifacts.remove_folder(tmp_path / "made")
    assert os.listdir(tmp_path) == [".made.partial"]
