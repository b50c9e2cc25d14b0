"""A stranger's run opens nothing outside its folder, imports nothing, and runs nothing."""

import contextlib
import os
import shutil
import sys

import pytest
import yaml

import saccade

TARGET = "secret.txt"
CHANGES = [
    ("task", {"source": {"class": "text", "tokeniser": {"class": "hostile_module.Hostile"}}}),
    ("task", {"source": {"class": "text", "tokeniser": "char", "join": "{0.__class__} {}"}}),
    ("task", {"source": {"class": "node", "graph": "../secret.txt"}}),
    ("task", {"source": {"class": "hostile_module.Hostile"}}),
    ("task", {"class": "classification", "inputs": {"text": {"class": "node", "graph": "../secret.txt"}}}),
    ("task", {"class": "classification", "inputs": {"../x": {"class": "text"}}}),
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
    with contextlib.suppress(ValueError, TypeError, OSError):
        saccade.load("run").predict(["ba"])
    wrong = [entry for entry in opened if not entry.startswith("open ") or TARGET in entry or "hostile" in entry]
    assert not wrong
    assert not (tmp_path / "PWNED").exists()
    assert not any("hostile_module" in name for name in set(sys.modules) - modules)
    near = [entry for entry in opened if str(tmp_path) in entry and os.sep + "run" + os.sep not in entry]
    assert not near


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
