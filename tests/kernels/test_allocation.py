"""Freed blocks stay with the process, unless the environment has decided."""

import os
import subprocess
import sys

import pytest

COUNT_FAULTS = """
import resource, torch
from saccade.kernels.allocation import keep_freed_memory
told = keep_freed_memory()
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(16 << 20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
print(told, min(faults() for _ in range(3)))
"""


def run(**environment: str) -> tuple[str, int]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
    done = subprocess.run(
        [sys.executable, "-c", COUNT_FAULTS], env={**clean, **environment}, check=True, capture_output=True, text=True
    )
    told, faults = done.stdout.split()
    return told, int(faults)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="page faults are counted as Linux does")
def test_blocks_are_used_again():
    told, faults = run()
    if told == "False":
        pytest.skip("this C library is not glibc")
    left, others = run(MALLOC_MMAP_THRESHOLD_="131072")
    assert left == "False"
    if others < 100:
        pytest.skip("with huge pages there are few page faults either way")
    # Where the system happens to put something right behind the heap, it cannot grow: not in every process.
    assert faults < 100 or any(run()[1] < 100 for _ in range(7))
