"""What is installed holds everything that the command line needs, away from the repository."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from saccade.kernels import native

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.slow
def test_a_wheel_trains_and_predicts_outside_the_repository(tmp_path) -> None:
    pytest.importorskip("hatchling")
    pytest.importorskip("build")
    # First the source distribution, then the wheel of it: both must be complete.
    build = [sys.executable, "-m", "build", str(ROOT), "--no-isolation", "--outdir", str(tmp_path)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("saccade-*.whl")
    compiled = native._compiler() is not None
    assert ("py3-none-any" not in wheel.name) == compiled
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path / "installed")
    installed = tmp_path / "installed" / "saccade"
    sources = [path for path in (ROOT / "saccade").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    packed_files = {path.relative_to(installed) for path in installed.rglob("*") if path.is_file()}
    kernels = {path for path in packed_files if path.parts[:2] == ("kernels", "prebuilt")}
    assert {path.relative_to(ROOT / "saccade") for path in sources} == packed_files - kernels
    assert bool(kernels) == compiled

    def saccade(*arguments: str, given: str = "") -> str:
        environment = {**os.environ, "PYTHONPATH": str(installed.parent), "PATH": "", "CC": "none"}  # no compiler
        command = [sys.executable, "-m", "saccade", *arguments]
        called = subprocess.run(command, cwd=tmp_path, env=environment, input=given, text=True, capture_output=True)
        assert called.returncode == 0, called.stderr
        return called.stdout

    rows = [f"{number}a\ta{number}\n" for number in range(120)]
    (tmp_path / "pairs.tsv").write_text("".join(rows))
    small = ["--task.source.tokeniser=char", "--model={embedding_dim: 7, hidden_dim: 11}", "--trainer={max_steps: 2}"]
    assert ("Kernels: native, prebuilt for" in saccade("doctor")) == compiled
    assert "translation/rnnsearch" in saccade("list", "configs")
    saccade("train", "translation/rnnsearch", "--data=pairs.tsv", "--output=run", *small)
    assert len(saccade("predict", "run", "--max-length=5", given="1a\n2a\n").splitlines()) == 2
