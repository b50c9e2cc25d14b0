"""The script that is shipped is the one that its sources make."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
ASSETS = ROOT / "saccade" / "interpretation" / "explorer" / "assets"
SOURCES = ROOT / "explorer"


def test_script_is_small_and_can_stand_in_a_page() -> None:
    script = (ASSETS / "explorer.js").read_text(encoding="utf-8")
    assert len(script.encode()) < 200_000
    assert "</script" not in script.lower()
    assert "<!--" not in script
    assert "</style" not in (ASSETS / "explorer.css").read_text(encoding="utf-8").lower()
    assert "\r" not in script


def test_lock_file_names_no_registry() -> None:
    lock = (SOURCES / "package-lock.json").read_text(encoding="utf-8")
    assert '"integrity"' in lock
    assert '"resolved"' not in lock


def test_bundled_libraries_are_named_with_their_licences() -> None:
    notice = (ASSETS / "NOTICE.txt").read_text(encoding="utf-8")
    for name in ("preact", "d3-scale", "d3-scale-chromatic", "d3-shape"):
        assert f"\n{name} " in notice


@pytest.mark.slow
def test_sources_make_the_same_bytes(tmp_path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm on this machine")
    copied = tmp_path / "explorer"
    shutil.copytree(SOURCES, copied, ignore=shutil.ignore_patterns("node_modules"))
    environment = {**os.environ, "CI": "1"}
    installed = subprocess.run(
        [npm, "install", "--no-save", "--ignore-scripts"],
        cwd=copied,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if installed.returncode != 0:
        pytest.skip(f"npm cannot install: {installed.stderr[-300:]}")
    subprocess.run([npm, "run", "build"], cwd=copied, env=environment, capture_output=True, text=True, check=True)
    made = tmp_path / "saccade" / "interpretation" / "explorer" / "assets"
    assert sorted(path.name for path in made.iterdir()) == ["NOTICE.txt", "explorer.css", "explorer.js"]
    for path in made.iterdir():
        assert path.read_bytes() == (ASSETS / path.name).read_bytes(), path.name
