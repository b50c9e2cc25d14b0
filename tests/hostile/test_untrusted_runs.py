"""A stranger's run opens nothing outside its folder, imports nothing, and runs nothing."""

import contextlib
import os
import shutil
import subprocess
import sys

import pytest
import yaml

import saccade
from saccade.runs import workers
from tests.hostile.counting import bounded

TARGET = "secret.txt"
OUTSIDE = os.path.join(os.sep, "etc")
CHANGES = [
    ("task", {"source": {"class": "text", "tokeniser": {"class": "hostile_module.Hostile"}}}),
    ("task", {"source": {"class": "text", "tokeniser": "char", "join": "{0.__class__} {}"}}),
    ("task", {"source": {"class": "node", "graph": "../secret.txt"}}),
    ("task", {"source": {"class": "hostile_module.Hostile"}}),
    ("task", {"class": "classification", "inputs": {"text": {"class": "node", "graph": "../secret.txt"}}}),
    ("task", {"class": "classification", "inputs": {"../x": {"class": "text"}}}),
    ("task", {"class": "classification", "inputs": {"../../outside": {"class": "text"}}}),
    ("task", {"class": "rating", "inputs": {OUTSIDE: {"class": "text"}}}),
    ("task", {"source": {"class": "audio", "rate": 384_000, "window": 1.0, "mels": 20_000}}),
    ("task", {"bleu_tokenize": "flores200"}),
    ("task", {"class": "classification", "inputs": {"x": {"class": "hostile_module.Hostile"}}}),
    ("data", {"train": "../secret.txt", "valid": "../secret.txt"}),
    ("data", {"train": "hf:hostile_module"}),
    ("data", {"columns": {"source": {"class": "hostile_module.Hostile"}}}),
    ("trainer", {"validate_options": {"prefix": {"class": "hostile_module.Hostile"}}}),
    ("trainer", {"validate_options": {"forced": {"0": "../secret.txt"}}}),
    ("model", {"selection": {"class": "hostile_module.Hostile"}}),
]


@pytest.fixture
def opened(writer, tmp_path, monkeypatch):
    """A copy of a run without checksums, beside a module and a file that must not be opened; what was opened."""
    shutil.copytree(writer, tmp_path / "run")
    (tmp_path / "run" / "checksums.json").unlink()
    (tmp_path / "hostile_module.py").write_text("open('PWNED', 'w').close()\n\n\nclass Hostile: ...\n")
    (tmp_path / TARGET).write_text("0 1\n")
    monkeypatch.chdir(tmp_path)
    saccade.load("run").predict(["ba"])  # imports what Saccade imports by itself
    seen: list[str] = []
    watching.append(seen)
    yield seen
    watching.remove(seen)


watching: list[list[str]] = []


def watch(event: str, arguments) -> None:
    if watching and event in ("open", "os.system", "subprocess.Popen", "socket.connect", "os.exec"):
        if isinstance(arguments[0], int):  # a descriptor, whose opening was seen
            return
        watching[-1].append(f"{event} {arguments[0]}")


sys.addaudithook(watch)


@pytest.mark.parametrize(("section", "change"), CHANGES, ids=[str(n) for n in range(len(CHANGES))])
def test_nothing_but_its_own_folder(section, change, opened, tmp_path) -> None:
    path = tmp_path / "run" / "config.yaml"
    config = yaml.safe_load(path.read_text())
    config[section] = {**config[section], **change}
    path.write_text(yaml.safe_dump(config))
    opened.clear()
    modules = set(sys.modules)
    with bounded(change), contextlib.suppress(ValueError, TypeError, OSError):
        run = saccade.load("run")
        run.predict(["ba"])
        run.evaluate([("ba", "ab")])
    assert not [entry for entry in opened if not entry.startswith("open ")]
    assert not (tmp_path / "PWNED").exists()
    assert not any("hostile_module" in name for name in set(sys.modules) - modules)
    paths = {os.path.abspath(entry.removeprefix("open ")) for entry in opened}
    near = (str(tmp_path), OUTSIDE)
    assert not [path for path in paths if path.startswith(near) and not path.startswith(str(tmp_path / "run"))]


PLANTED = ("saccade", "torch", "numpy", "yaml", "random", "pickle", "sitecustomize", "hostile_module")


def test_workers_take_no_modules_from_the_working_folder(writer, tmp_path, monkeypatch) -> None:
    """A worker that is started in a stranger's folder imports what the command itself would import."""
    for name in PLANTED:
        (tmp_path / f"{name}.py").write_text("open('PWNED', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])  # as in the command `saccade`
    started = {}
    with monkeypatch.context() as patched, contextlib.suppress(AttributeError):  # since nothing is started
        patched.setattr(subprocess, "Popen", lambda command, **options: started.update(options, args=command))
        workers._Process()
    *command, _ = started["args"]
    code = "import importlib.util, sys; print([importlib.util.find_spec(name) for name in sys.argv[1:]])"
    done = subprocess.run([*command, code, *PLANTED], env=started["env"], capture_output=True, text=True, check=True)
    assert str(tmp_path) not in done.stdout
    assert "ModuleSpec(name='torch'" in done.stdout
    assert not (tmp_path / "PWNED").exists()


@pytest.fixture
def stranger(files):
    """A folder with a configuration that names a class, and with its module."""
    (files / "hostile_module.py").write_text("open('PWNED', 'w').close()\n\n\nclass Hostile: ...\n")
    (files / "folder" / "config.yaml").write_text("task: hostile_module.Hostile\nmodel: rnnsearch\n")
    return files


def test_trust_in_a_run_is_no_trust_in_other_folders(writer, stranger, call) -> None:
    for options in (["--data", "folder", writer], [writer, "--data", "folder"]):
        code, _, errors = call("evaluate", *options, "--trust-classes")
        assert code == 2
        assert "folder" in errors
        assert not (stranger / "PWNED").exists()


def test_checking_a_configuration_runs_nothing(stranger, call) -> None:
    code, _, errors = call("validate", "folder/config.yaml")
    assert code == 2
    assert "task: 'hostile_module.Hostile' is not a class that comes with Saccade" in errors
    assert "--trust-classes" in errors
    assert not (stranger / "PWNED").exists()
    code, _, errors = call("validate", "folder/config.yaml", "--trust-classes")
    assert code == 2
    assert "hostile_module.Hostile is not a kind of Task" in errors
    assert (stranger / "PWNED").exists()
    del sys.modules["hostile_module"]


def test_the_watch_sees_what_it_must(opened, tmp_path) -> None:
    path = tmp_path / "run" / "config.yaml"
    config = yaml.safe_load(path.read_text())
    config["model"] = {**config["model"], "selection": {"class": "hostile_module.Hostile"}}
    path.write_text(yaml.safe_dump(config))
    opened.clear()
    with pytest.raises(ValueError, match="not a kind of Selection"):
        saccade.load("run", trust=True)  # trusted, it is imported, and is then no selection
    assert any("hostile_module" in entry for entry in opened)
    assert (tmp_path / "PWNED").exists()
    del sys.modules["hostile_module"]
