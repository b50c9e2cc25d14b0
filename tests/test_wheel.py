"""What is installed holds everything that the command line needs, away from the repository."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.slow
def test_a_wheel_trains_and_predicts_outside_the_repository(tmp_path) -> None:
    pytest.importorskip("hatchling")
    build = [sys.executable, "-m", "pip", "wheel", str(ROOT), "--no-deps", "--no-build-isolation", "--quiet"]
    subprocess.run([*build, "--wheel-dir", str(tmp_path)], check=True)
    (wheel,) = tmp_path.glob("saccade-*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path / "installed")
    installed = tmp_path / "installed" / "saccade"
    sources = [path for path in (ROOT / "saccade").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert {path.relative_to(ROOT / "saccade") for path in sources} == {
        path.relative_to(installed) for path in installed.rglob("*") if path.is_file()
    }

    def saccade(*arguments: str, given: str = "") -> str:
        environment = {**os.environ, "PYTHONPATH": str(installed.parent)}
        command = [sys.executable, "-m", "saccade", *arguments]
        called = subprocess.run(command, cwd=tmp_path, env=environment, input=given, text=True, capture_output=True)
        assert called.returncode == 0, called.stderr
        return called.stdout

    rows = [f"{number}a\ta{number}\n" for number in range(120)]
    (tmp_path / "pairs.tsv").write_text("".join(rows))
    small = ["--task.source.tokeniser=char", "--model={embedding_dim: 7, hidden_dim: 11}", "--trainer={max_steps: 2}"]
    assert "translation/rnnsearch" in saccade("list", "configs")
    saccade("train", "translation/rnnsearch", "--data=pairs.tsv", "--output=run", *small)
    assert len(saccade("predict", "run", "--max-length=5", given="1a\n2a\n").splitlines()) == 2
