"""The C kernels: compiled once, safe to compile at the same time, and never needed."""

import os
import subprocess
import sys

import pytest
import torch

from saccade.kernels import native
from saccade.kernels.additive import additive_scores, additive_scores_reference

SCRIPT = """
import torch
from saccade.kernels import native
from saccade.kernels.additive import additive_scores, additive_scores_reference
from saccade.selections.sparsemax import sparsemax
from saccade.selections.fusedmax import fusedmax
print(native.library() is not None)
inputs = torch.randn(2, 3, 7), torch.randn(2, 5, 7), torch.randn(7)
torch.testing.assert_close(additive_scores(*inputs), additive_scores_reference(*inputs))
assert torch.allclose(sparsemax(torch.tensor([1.0, 0.8, 0.1, -1.0])), torch.tensor([0.6, 0.4, 0.0, 0.0]))
assert torch.allclose(fusedmax(torch.tensor([1.0, 2.1, 1.9])), torch.tensor([0.0, 0.5, 0.5]))
"""

needs_compiler = pytest.mark.skipif(native._load() is None, reason="there is no C compiler")


def start(**environment):
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT], env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True
    )


def answer(process):
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    return output.strip()


@needs_compiler
def test_processes_may_compile_at_once_and_leave_one_file(tmp_path):
    together = [start(XDG_CACHE_HOME=str(tmp_path)) for _ in range(2)]
    assert [answer(process) for process in together] == ["True", "True"]
    (made,) = (tmp_path / "saccade").iterdir()
    written = made.stat().st_mtime_ns
    assert answer(start(XDG_CACHE_HOME=str(tmp_path))) == "True"
    assert made.stat().st_mtime_ns == written


@needs_compiler
def test_a_damaged_file_is_made_anew(tmp_path):
    assert answer(start(XDG_CACHE_HOME=str(tmp_path))) == "True"
    (made,) = (tmp_path / "saccade").iterdir()
    made.write_bytes(b"not a library")
    assert answer(start(XDG_CACHE_HOME=str(tmp_path))) == "True"
    assert made.stat().st_size > 1000


@pytest.mark.parametrize(
    "environment", [{"SACCADE_NATIVE": "0"}, {"CC": "false"}, {"PATH": ""}], ids=["refused", "failing", "missing"]
)
def test_without_a_compiler_everything_works(tmp_path, environment):
    assert answer(start(XDG_CACHE_HOME=str(tmp_path), **environment)) == "False"


@needs_compiler
def test_a_cache_that_cannot_be_written_is_no_obstacle(tmp_path):
    (tmp_path / "saccade").write_text("a file where the folder should be")
    assert answer(start(XDG_CACHE_HOME=str(tmp_path))) == "True"


@needs_compiler
def test_work_is_shared_by_threads_without_gaps():
    items, seen = 11, []
    native.run(lambda first, last: seen.extend(range(first.value, last.value)), items=items, operations=1e9)
    assert sorted(seen) == list(range(items))


@needs_compiler
def test_a_forked_process_has_threads_of_its_own():
    inputs = torch.randn(3, 67, 31), torch.randn(3, 71, 31), torch.randn(31)
    expected = additive_scores_reference(*inputs)
    torch.testing.assert_close(additive_scores(*inputs), expected, rtol=1e-5, atol=1e-5)
    child = os.fork()
    if not child:  # nothing of pytest may run here
        try:
            threads_before = torch.get_num_threads
            torch.get_num_threads = lambda: 2  # PyTorch's own threads do not survive the fork either
            near = (additive_scores(*inputs) - expected).abs().max().item() < 1e-4
            torch.get_num_threads = threads_before
        except BaseException:
            near = False
        os._exit(0 if near else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_other_tensors_take_the_plain_path():
    assert not native.usable(torch.zeros(2, dtype=torch.float16))
    assert not native.usable(torch.zeros(2, device="meta"))
