import errno
import json
import os

import pytest

from saccade import artifacts
from saccade.artifacts import (
    ArtifactError,
    fill_folder,
    remove_folder,
    restore_folders,
    seal,
    verify,
    write_file,
    write_folder,
)


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
        ArtifactError, match=r"No space left on device.*writing .*a.txt failed, it is as it was before"
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


def test_a_folder_is_filled_all_at_once(tmp_path):
    def fill(folder):
        (folder / "inner").mkdir()
        (folder / "inner" / "a").write_bytes(b"one")

    path = fill_folder(tmp_path / "made", fill)
    verify(path, required=["inner/a"])

    def fail(folder):
        (folder / "b").write_bytes(b"two")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(ArtifactError, match="No space left"):
        fill_folder(path, fail)
    assert sorted(os.listdir(path)) == ["checksums.json", "inner"]
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
        (lambda path: (path / "checksums.json").write_bytes(b"[]"), "checksums.json is damaged: it is not an object"),
        (lambda path: (path / "checksums.json").write_bytes(b"{}"), "checksums.json is damaged: it has no entry for a"),
        (lambda path: (path / "checksums.json").write_bytes(b'{"a": 7}'), "the entry for a is not a SHA-256"),
        (lambda path: (path / "checksums.json").write_bytes(b'{"a": "00"}'), "the entry for a is not a SHA-256"),
        (lambda path: (path / "checksums.json").write_bytes(b"[" * 99999), "nested more than 32 levels"),
        (lambda path: (path / "a").unlink() or (path / "a").mkdir(), "a is not an ordinary file"),
        (lambda path: (path / "a").unlink() or os.mkfifo(path / "a"), "a is not an ordinary file"),
    ],
)
def test_damage_is_found(tmp_path, damage, complaint):
    path = write_folder(tmp_path / "made", {"a": b"one"})
    damage(path)
    with pytest.raises(ArtifactError, match=complaint):
        verify(path, required=["a"])


@pytest.mark.parametrize("name", ["../a", "/a", "b/../../a", "", ".", "b\\\\..\\\\a", "c:a", "a\\0"])
def test_sums_of_files_outside_the_folder_are_refused(tmp_path, name):
    path = write_folder(tmp_path / "made", {"a": b"one"})
    sums = json.loads((path / "checksums.json").read_text())
    (path / "checksums.json").write_text(json.dumps({**sums, name: sums["a"]}))
    with pytest.raises(ArtifactError, match="is not a file inside the folder"):
        verify(path, required=["a"])


def test_a_planted_link_is_not_written_through(tmp_path):
    (tmp_path / "precious").write_text("precious")
    (tmp_path / ".a.txt.partial").symlink_to(tmp_path / "precious")
    (tmp_path / "a.txt").symlink_to(tmp_path / "precious")
    write_file(tmp_path / "a.txt", "new")
    assert (tmp_path / "precious").read_text() == "precious"
    assert (tmp_path / "a.txt").read_text() == "new"


@pytest.mark.parametrize("name", [".made.partial", ".made.previous", ".made.removed", "made"])
def test_a_planted_link_to_a_folder_is_not_written_through(tmp_path, name):
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "a").write_text("mine")
    parent = tmp_path / "parent"
    parent.mkdir()
    (parent / name).symlink_to(victim)
    path = write_folder(parent / "made", {"a": b"one"})
    write_folder(path, {"a": b"two"})
    remove_folder(path)
    restore_folders(parent)
    assert os.listdir(parent) == []
    assert os.listdir(victim) == ["a"]
    assert (victim / "a").read_text() == "mine"


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


def test_removing_a_folder_leaves_the_one_that_takes_its_place(tmp_path):
    (tmp_path / "made").mkdir()
    (tmp_path / ".made.partial").mkdir()
    (tmp_path / ".made.removed").mkdir()  # by a crash
    artifacts.remove_folder(tmp_path / "made")
    assert os.listdir(tmp_path) == [".made.partial"]
