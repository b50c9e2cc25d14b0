"""Of two processes on one run folder, one works and the other is told who holds it."""

import errno
import json
import multiprocessing
import os
import re
import signal
import socket
import sys
import time

import pytest

from saccade import locks
from saccade.artifacts import ArtifactError
from saccade.locks import FolderInUseError, RunLock

_context = multiprocessing.get_context("fork")


@pytest.fixture(params=["flock", "file"])
def kind(request, monkeypatch):
    """Both with the kernel's locks and on systems without them."""
    if request.param == "file":
        monkeypatch.setattr(locks, "_lock", lambda descriptor: False)
    return request.param


@pytest.fixture
def holder():
    """Starts processes that hold a folder until they are told to end."""
    started = []

    def start(folder):
        entered, leave = _context.Event(), _context.Event()

        def hold():
            sys.argv = ["saccade", "train", "dates/rnnsearch", "--output", "runs/x"]
            with RunLock(folder):
                entered.set()
                leave.wait(60)

        process = _context.Process(target=hold)
        process.start()
        started.append(process)
        assert entered.wait(60)
        return process, leave

    yield start
    for process in started:
        process.kill()
        process.join()


def test_the_second_process_is_told_who_holds_the_folder(tmp_path, kind, holder):
    process, leave = holder(tmp_path / "run")
    message = (
        rf"run is in use by process {process.pid} \(saccade train dates/rnnsearch --output runs/x, "
        r"since \d\d:\d\d\): wait for it, stop it, or choose another folder\."
    )
    with pytest.raises(FolderInUseError, match=message), RunLock(tmp_path / "run"):
        pytest.fail("both hold it")
    leave.set()
    process.join(60)
    with RunLock(tmp_path / "run"):
        assert (tmp_path / "run" / ".lock").exists()


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path, kind, holder):
    process, _ = holder(tmp_path)
    os.kill(process.pid, signal.SIGKILL)
    process.join(60)
    assert json.loads((tmp_path / ".lock").read_text())["pid"] == process.pid  # it had no time to tidy up
    with RunLock(tmp_path):
        assert json.loads((tmp_path / ".lock").read_text())["pid"] == os.getpid()
    assert os.listdir(tmp_path) == []


def test_of_many_at_once_one_at_a_time_holds_it(tmp_path):
    """Each writes its number, waits, and finds it unchanged; a busy folder is tried again."""
    failures = _context.Queue()

    def work(number):
        done = 0
        while done < 20:
            try:
                with RunLock(tmp_path):
                    (tmp_path / "number").write_text(str(number))
                    if (tmp_path / "number").read_text() != str(number):
                        failures.put(number)
                    done += 1
            except FolderInUseError:
                continue

    processes = [_context.Process(target=work, args=(number,)) for number in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 4
    assert failures.empty()


def test_a_forked_worker_does_not_keep_the_lock(tmp_path):
    """As the workers of a killed training, which may live a little longer."""
    read, write = os.pipe()
    parent = os.fork()
    if not parent:
        with RunLock(tmp_path):
            child = os.fork()
            if child:
                os.write(write, str(child).encode())
            time.sleep(60)
            os._exit(0)
    child = int(os.read(read, 100))
    with pytest.raises(FolderInUseError, match=f"process {parent} "), RunLock(tmp_path):
        pass
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    with RunLock(tmp_path):
        os.kill(child, signal.SIGKILL)  # it was still alive
    os.close(read)
    os.close(write)


def test_a_child_that_leaves_the_block_does_not_unlock(tmp_path):
    with RunLock(tmp_path) as lock:
        child = os.fork()
        if not child:
            lock.__exit__(None, None, None)
            os._exit(0)
        os.waitpid(child, 0)
        assert lock.path.exists()
        with pytest.raises(FolderInUseError), RunLock(tmp_path):
            pass


def test_only_the_first_process_of_torchrun_locks(tmp_path, monkeypatch):
    with RunLock(tmp_path):
        monkeypatch.setenv("RANK", "1")
        with RunLock(tmp_path):
            pass
        assert (tmp_path / ".lock").exists()


def test_a_file_system_without_locks_is_noticed(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def unsupported(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with RunLock(tmp_path), pytest.raises(FolderInUseError, match=f"process {os.getpid()} "), RunLock(tmp_path):
        pass


def test_a_holder_on_another_machine_is_never_taken_for_dead(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "_lock", lambda descriptor: False)
    holder = {"pid": 2**30, "host": "elsewhere", "since": 0, "command": "saccade train"}
    (tmp_path / ".lock").write_text(json.dumps(holder))
    with pytest.raises(FolderInUseError, match=r"process 1073741824 on elsewhere .*since 19"), RunLock(tmp_path):
        pass
    (tmp_path / ".lock").write_text(json.dumps({**holder, "host": socket.gethostname()}))
    with RunLock(tmp_path):
        pass


def test_an_error_leaves_no_empty_folder(tmp_path):
    with pytest.raises(ValueError, match="config"), RunLock(tmp_path / "a"):
        raise ValueError("config")
    assert os.listdir(tmp_path) == []


def plant_link(path, tmp_path):
    (tmp_path / "precious").write_text("precious")
    path.symlink_to(tmp_path / "precious")


@pytest.mark.parametrize(
    ("plant", "message"),
    [
        (plant_link, "Could not lock"),
        (lambda path, _: path.mkdir(), "Could not lock"),
        (lambda path, _: os.mkfifo(path), "is not an ordinary file"),
    ],
    ids=["link", "folder", "pipe"],
)
def test_a_planted_lock_is_refused(tmp_path, plant, message):
    (tmp_path / "run").mkdir()
    plant(tmp_path / "run" / ".lock", tmp_path)
    with pytest.raises(ArtifactError, match=message), RunLock(tmp_path / "run"):
        pass
    if plant is plant_link:
        assert (tmp_path / "precious").read_text() == "precious"


@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"[" * 60000, b'{"pid": "1"}', b'{"pid": 1, "command": "\\u001b[2J"}']
)
def test_a_holder_that_signed_with_nonsense_is_another_process(tmp_path, content):
    fcntl = pytest.importorskip("fcntl")
    with open(tmp_path / ".lock", "wb") as file:
        file.write(content)
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(FolderInUseError, match=re.escape("is in use by another process:")), RunLock(tmp_path):
            pass
