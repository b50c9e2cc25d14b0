"""Kernels that a wheel brings along: used only if they fit."""

import json
import shutil
import sys
from pathlib import Path

import pytest
import torch

from saccade.kernels import native, prebuilt
from saccade.selections.sparsemax import sparsemax

needs_compiler = pytest.mark.skipif(
    native._compiler() is None or sys.platform != "linux", reason="there is no C compiler, or this is not Linux"
)


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prebuilt")
    prebuilt.build(folder, [*native._compiler(), "-O0"])  # compiled faster
    return folder


def test_a_slow_compiler_is_waited_for(tmp_path, monkeypatch):
    limits = []

    def compiled(command, **options):
        limits.append(options.get("timeout"))
        Path(command[command.index("-o") + 1]).write_bytes(b"")

    monkeypatch.setattr(prebuilt.subprocess, "run", compiled)
    monkeypatch.setattr(prebuilt.platform, "machine", lambda: "x86_64")
    assert len(prebuilt.build(tmp_path, ["cc"])) == len(limits) + 1
    assert set(limits) == {None}


@needs_compiler
def test_the_best_library_for_the_processor_is_found(built, monkeypatch):
    path, level = prebuilt.find(built)
    assert path == built / f"kernels-{level}.so"
    levels = prebuilt.LEVELS[json.loads((built / prebuilt.ABOUT).read_text())["machine"]]
    for level, needed in levels.items():
        monkeypatch.setattr(prebuilt, "processor_features", lambda needed=needed: needed)
        assert prebuilt.find(built)[1] == level
    if all(levels.values()):
        monkeypatch.setattr(prebuilt, "processor_features", frozenset)
        assert prebuilt.find(built) == (None, "this processor is older than those they were compiled for")


@needs_compiler
def test_what_does_not_fit_is_not_loaded(built, tmp_path, monkeypatch):
    assert prebuilt.find(tmp_path) == (None, "this installation has none")
    sources = shutil.copytree(prebuilt.SOURCE, tmp_path / "source")
    (sources / "grow.h").write_text("/* another */")
    assert prebuilt.find(built, sources) == (None, "they were compiled from other sources")
    copied = shutil.copytree(built, tmp_path / "copied")
    path, _ = prebuilt.find(copied)
    path.write_bytes(path.read_bytes()[:-1])
    assert "is damaged" in prebuilt.find(copied)[1]
    (copied / prebuilt.ABOUT).write_text("[]")
    assert "is damaged" in prebuilt.find(copied)[1]
    monkeypatch.setattr(prebuilt.platform, "machine", lambda: "riscv64")
    assert prebuilt.find(built)[0] is None
    with pytest.raises(OSError, match="riscv64"):
        prebuilt.build(tmp_path, ["cc"])


@needs_compiler
def test_they_run_without_a_compiler(built, monkeypatch):
    monkeypatch.setattr(native, "_brought", native._brought.__wrapped__)
    monkeypatch.setattr(native, "_load", native._load.__wrapped__)
    monkeypatch.setattr(native, "_compiler", lambda: None)
    assert native.library() is None
    assert "of prebuilt kernels this installation has none" in native.status()
    find = prebuilt.find
    monkeypatch.setattr(prebuilt, "find", lambda: find(built))
    assert native.library() is not None
    assert native.status().startswith("native, prebuilt for ")
    torch.testing.assert_close(sparsemax(torch.tensor([1.0, 0.8, 0.1])), torch.tensor([0.6, 0.4, 0.0]))
    monkeypatch.setenv("SACCADE_NATIVE", "compile")
    assert native.library() is None
