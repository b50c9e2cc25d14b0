"""`import saccade` is cheap, and brings nothing that its core does not need."""

import json
import subprocess
import sys

OPTIONAL = {
    "accelerate",
    "datasets",
    "entmax",
    "fastapi",
    "joeynmt",
    "jsonargparse",
    "keras",
    "matplotlib",
    "mkdocs",
    "numba",
    "pandas",
    "transformers",
    "uvicorn",
    "yaml",
}
MOST_SECONDS = 0.3

MEASURE = """
import json, sys, time
import torch
before = set(sys.modules)
start = time.process_time()
import saccade
seconds = time.process_time() - start
print(json.dumps([seconds, sorted(set(sys.modules) - before)]))
"""


def measure() -> tuple[float, set[str]]:
    """Seconds of computing that `import saccade` takes after `import torch`, and the packages that it adds.

    Not seconds of the clock: those grow with whatever else the machine does.
    """
    run = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True)
    seconds, modules = json.loads(run.stdout)
    return seconds, {name.partition(".")[0] for name in modules}


def test_import_costs_little_more_than_torch() -> None:
    # The least of several runs: the first may have to write byte code.
    seconds, _ = measure()
    for _ in range(6):
        if seconds <= MOST_SECONDS:
            break
        seconds = min(seconds, measure()[0])
    assert seconds <= MOST_SECONDS


def test_import_loads_no_optional_package() -> None:
    _, packages = measure()
    assert "saccade" in packages
    assert not packages & OPTIONAL


def test_import_starts_no_process() -> None:
    """Kernels are compiled on first use, never at import."""
    refuse = "import torch, subprocess\ndef refuse(*a, **k): raise AssertionError(a)\nsubprocess.Popen = refuse\n"
    code = f"{refuse}import saccade\nprint('imported')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stdout.strip() == "imported", run.stderr
