"""The C kernels: compiled once, safe to compile at the same time, and never needed."""

import ctypes
import os
import shutil
import threading
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from saccade.kernels import native
from saccade.kernels.additive import additive_scores, additive_scores_reference
from saccade.selections.fusedmax import fusedmax
from saccade.selections.sparsemax import sparsemax

needs_compiler = pytest.mark.skipif(native._load() is None, reason="there is no C compiler")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "saccade"


def command():
    return [
        shutil.which("cc") or shutil.which("gcc") or shutil.which("clang"),
        "-O0",
        "-march=native",
        "-fPIC",
        "-shared",
    ]


@needs_compiler
def test_a_damaged_file_is_mended_by_two_at_once_and_then_kept(cache):
    cache.mkdir(mode=0o700)
    damaged = cache / f"kernels-{native._fingerprint(command())}-{'0' * 20}.so"
    damaged.write_bytes(b"not a library")
    with ThreadPoolExecutor(2) as pool:
        together = [pool.submit(native._compile, command()) for _ in range(2)]
    assert all(isinstance(made.result(), ctypes.CDLL) for made in together)
    (kept,) = set(cache.iterdir()) - {damaged}
    assert kept.stat().st_size > 1000
    written = kept.stat().st_mtime_ns
    assert isinstance(native._compile(command()), ctypes.CDLL)
    assert kept.stat().st_mtime_ns == written


@needs_compiler
def test_a_cache_that_cannot_be_written_is_no_obstacle(cache):
    cache.write_text("a file where the folder should be")
    with pytest.warns(RuntimeWarning, match="not a folder"):
        assert isinstance(native._compile(command()), ctypes.CDLL)


@pytest.mark.parametrize(
    "environment",
    [{"SACCADE_NATIVE": "0"}, {"CC": "false"}, {"PATH": "", "CC": "cc"}],
    ids=lambda e: " ".join(e),
)
@pytest.mark.filterwarnings("ignore:Saccade's C kernels:RuntimeWarning")
def test_without_a_compiler_everything_works(cache, monkeypatch, environment):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    loaded = native._load
    monkeypatch.setattr(native, "_load", lambda: loaded.__wrapped__())  # as in a process that has not looked yet
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert native.library() is None
    assert [issubclass(w.category, RuntimeWarning) for w in said] == [True] * (environment == {"CC": "false"})
    inputs = torch.randn(2, 3, 7), torch.randn(2, 5, 7), torch.randn(7)
    torch.testing.assert_close(additive_scores(*inputs), additive_scores_reference(*inputs))
    torch.testing.assert_close(sparsemax(torch.tensor([1.0, 0.8, 0.1])), torch.tensor([0.6, 0.4, 0.0]))
    torch.testing.assert_close(fusedmax(torch.tensor([1.0, 2.1, 1.9])), torch.tensor([0.0, 0.5, 0.5]))


def test_the_result_depends_on_compiler_flags_and_sources(tmp_path, monkeypatch):
    compiler = shutil.which("env")
    plain = native._fingerprint([compiler])
    assert native._fingerprint([compiler]) == plain
    assert native._fingerprint([compiler, "-O1"]) != plain
    shutil.copytree(native.SOURCE, tmp_path / "source")
    monkeypatch.setattr(native, "SOURCE", tmp_path / "source")
    assert native._fingerprint([compiler]) == plain
    (tmp_path / "source" / "kernels.c").write_text("int nothing;")
    assert native._fingerprint([compiler]) != plain


def test_work_is_shared_by_threads_without_gaps(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    parts = native.run(lambda first, last: (first.value, last.value), items=11, operations=1e9)
    assert [item for first, last in parts for item in range(first, last)] == list(range(11))
    assert len(parts) == 3
    assert len(native.run(lambda first, last: None, items=11, operations=1.0)) == 1


@needs_compiler
def test_a_forked_process_has_threads_of_its_own(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    inputs = torch.randn(3, 67, 31), torch.randn(3, 71, 31), torch.randn(31)
    expected = additive_scores(*inputs)
    child = os.fork()
    if not child:  # nothing of pytest may run here
        try:
            same = torch.equal(additive_scores(*inputs), expected)
        except BaseException:
            same = False
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_other_tensors_take_the_plain_path():
    assert not native.usable(torch.zeros(2, dtype=torch.float16))
    assert not native.usable(torch.zeros(2, device="meta"))
    assert not native.usable(torch._neg_view(torch.zeros(2)))
    assert not native.usable(torch.zeros(2).to_sparse())


@needs_compiler
def test_without_a_home_it_is_compiled_for_this_process(monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(native.cache.Path, "home", no_home)
    assert native.cache.private_cache() is None
    assert isinstance(native._compile(command()), ctypes.CDLL)


def test_an_interrupted_call_leaves_its_tensors_to_the_threads(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    go_on, done = threading.Event(), threading.Event()

    def kernel(address, first, last):
        if not first.value:
            raise KeyboardInterrupt
        go_on.wait(10)
        done.set()

    def interrupted():
        tensor = torch.zeros(7)
        with pytest.raises(KeyboardInterrupt):
            native.run(kernel, tensor, items=2, operations=1e9)
        return weakref.ref(tensor)

    tensor = interrupted()
    assert tensor() is not None
    go_on.set()
    assert done.wait(10)


@needs_compiler
def test_counts_are_not_cut_to_32_bits():
    count = native.count("additive_backward_items", torch.float32, 2**33, 1, 5)
    assert count == 2**33
