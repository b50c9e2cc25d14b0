"""`import saccade` is cheap, and brings nothing that its core does not need."""

import json
import subprocess
import sys
from pathlib import Path

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
MOST = 0.2
"""Of the time of `import torch`: 0.3 s where that takes 1.5 s."""

MEASURE = """
import json, sys, time
start = time.process_time()
import torch
torch_seconds = time.process_time() - start
before = set(sys.modules)
sys.dont_write_bytecode, sys.pycache_prefix = False, sys.argv[1]
start = time.process_time()
import saccade
seconds = time.process_time() - start
print(json.dumps([seconds / torch_seconds, sorted(set(sys.modules) - before)]))
"""


def measure(byte_code: Path) -> tuple[float, set[str]]:
    """What `import saccade` costs as a part of `import torch` before it, and the packages that it adds.

    In time of computing, which other programs change less than time of the clock, and from byte code, as for users.
    """
    run = subprocess.run([sys.executable, "-c", MEASURE, str(byte_code)], capture_output=True, text=True, check=True)
    part, modules = json.loads(run.stdout)
    return part, {name.partition(".")[0] for name in modules}


def test_import_costs_little_more_than_torch(tmp_path: Path) -> None:
    measure(tmp_path)  # writes the byte code
    parts = []
    for _ in range(6):
        parts.append(measure(tmp_path)[0])
        if parts[-1] <= MOST:
            break
    assert min(parts) <= MOST, f"parts of the time of `import torch`, in several runs: {parts}"


def test_import_loads_no_optional_package(tmp_path: Path) -> None:
    _, packages = measure(tmp_path)
    assert "saccade" in packages
    assert not packages & OPTIONAL


def test_import_starts_no_process() -> None:
    """Kernels are compiled on first use, never at import."""
    refuse = "import torch, subprocess\ndef refuse(*a, **k): raise AssertionError(a)\nsubprocess.Popen = refuse\n"
    code = f"{refuse}import saccade\nprint('imported')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stdout.strip() == "imported", run.stderr
