"""Hostile caches: what somebody else put there is never loaded, and what is damaged never crashes."""

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from saccade.kernels import cache, native

needs_compiler = pytest.mark.skipif(native._load() is None, reason="there is no C compiler")
EVIL = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((constructor)) void run(void) { fclose(fopen(getenv("PWNED"), "w")); }
"""


def command():
    return [shutil.which("cc") or shutil.which("gcc") or shutil.which("clang"), "-O0", "-fPIC", "-shared"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "saccade"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The bytes of the true library."""
    path = tmp_path_factory.mktemp("library") / "true.so"
    subprocess.run([*command(), "-o", path, native.SOURCE / "kernels.c", "-lm"], check=True)
    return path.read_bytes()


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    """The bytes of a library that leaves a file as soon as it is loaded."""
    path = tmp_path_factory.mktemp("evil") / "evil.so"
    source = path.with_suffix(".c")
    source.write_text(EVIL)
    subprocess.run([*command(), "-o", path, source], check=True)
    return path.read_bytes()


@pytest.fixture
def made(monkeypatch, library):
    """Compiling takes no time here."""
    calls = []

    def run(arguments, **_):
        calls.append(arguments)
        Path(arguments[arguments.index("-o") + 1]).write_bytes(library)

    monkeypatch.setattr(native.subprocess, "run", run)
    return calls


def name_of(content):
    return f"kernels-{native._fingerprint(command())}-{hashlib.sha256(content).hexdigest()[:20]}.so"


def plant(folder, content, mode=0o700):
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / name_of(content)
    path.write_bytes(content)
    path.chmod(mode)
    return path


@needs_compiler
def test_the_library_is_kept_in_a_private_folder(folder, made):
    before = os.umask(0)
    try:
        native._compile(command())
        native._compile(command())
    finally:
        os.umask(before)
    assert len(made) == 1
    (kept,) = folder.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert kept.stat().st_mode & 0o777 == 0o700


@needs_compiler
@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777, 0o702])
def test_a_folder_that_others_can_write_to_is_not_used(folder, made, evil, tmp_path, monkeypatch, mode):
    monkeypatch.setenv("PWNED", str(tmp_path / "pwned"))
    planted = plant(folder, evil)
    folder.chmod(mode)
    with pytest.warns(
        RuntimeWarning, match=r"saccade is not used as a cache, since other users can write to it.*chmod 700"
    ):
        assert isinstance(native._compile(command()), ctypes.CDLL)
    assert not (tmp_path / "pwned").exists()
    assert list(folder.iterdir()) == [planted]


@needs_compiler
def test_a_folder_in_one_that_others_can_write_to_is_not_used(folder, made):
    plant(folder, b"x")
    folder.parent.chmod(0o777)
    with pytest.warns(RuntimeWarning, match=r"other users can write to .*cache;"):
        assert isinstance(native._compile(command()), ctypes.CDLL)


@needs_compiler
def test_a_link_is_not_followed(folder, made, evil, tmp_path, monkeypatch):
    monkeypatch.setenv("PWNED", str(tmp_path / "pwned"))
    plant(tmp_path / "elsewhere", evil)
    folder.parent.mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.warns(RuntimeWarning, match="a link or a file"):
        assert isinstance(native._compile(command()), ctypes.CDLL)
    assert not (tmp_path / "pwned").exists()


@needs_compiler
@pytest.mark.parametrize("uid", [12345])
def test_a_folder_or_file_of_another_user_is_not_used(folder, made, evil, tmp_path, monkeypatch, uid):
    monkeypatch.setenv("PWNED", str(tmp_path / "pwned"))
    plant(folder, evil)
    monkeypatch.setattr(cache.os, "geteuid", lambda: uid)
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        assert isinstance(native._compile(command()), ctypes.CDLL)
    assert not (tmp_path / "pwned").exists()


@needs_compiler
@pytest.mark.parametrize("kind", ["writable", "link", "folder", "pipe"])
def test_a_planted_file_is_not_loaded(folder, made, evil, tmp_path, monkeypatch, kind):
    monkeypatch.setenv("PWNED", str(tmp_path / "pwned"))
    path = plant(folder, evil, mode=0o722)
    if kind == "link":
        path.rename(tmp_path / "evil.so")
        path.symlink_to(tmp_path / "evil.so")
    elif kind == "folder":
        path.unlink()
        path.mkdir()
    elif kind == "pipe":
        path.unlink()
        os.mkfifo(path)
    assert isinstance(native._compile(command()), ctypes.CDLL)
    assert not (tmp_path / "pwned").exists()
    assert len(made) == 1


@needs_compiler
def test_the_planted_library_would_have_run(folder, made, evil, tmp_path, monkeypatch):
    """What the other tests rely on: a private file of our own is loaded, even if it then lacks the kernels."""
    monkeypatch.setenv("PWNED", str(tmp_path / "pwned"))
    plant(folder, evil)
    assert isinstance(native._compile(command()), ctypes.CDLL)
    assert (tmp_path / "pwned").exists()


@needs_compiler
@pytest.mark.parametrize("part", [0, 1, 64, 1000, 4096, 8192, -4096, -1])
def test_a_truncated_library_is_compiled_again(folder, made, library, part):
    path = plant(folder, library)
    path.write_bytes(library[:part])
    assert isinstance(native._compile(command()), ctypes.CDLL)
    assert len(made) == 1
    assert path.read_bytes() == library


@needs_compiler
def test_a_library_without_the_kernels_falls_back_with_one_warning(tmp_path, folder, monkeypatch):
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "kernels.c").write_text("int nothing;")
    monkeypatch.setattr(native, "SOURCE", tmp_path / "source")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert native._load.__wrapped__() is None
    assert len(said) == 1
    assert "lacks additive_backward_float" in str(said[0].message)


@needs_compiler
@pytest.mark.skipif(shutil.which("nm") is None or sys.platform != "linux", reason="needs nm")
def test_every_kernel_is_listed(tmp_path, library):
    (tmp_path / "true.so").write_bytes(library)
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", tmp_path / "true.so"], capture_output=True, text=True, check=True
    )
    names = {line.split()[-1] for line in listed.stdout.splitlines()}
    assert {name for name in names if name.endswith(("_float", "_double"))} == set(native.SYMBOLS)
