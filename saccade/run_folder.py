"""What stands in the folder of a run, and how it is kept from harm."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from saccade.artifacts import CHECKSUMS, ArtifactError, seal, verify, write_file, write_folder
from saccade.configuration import ConfigError, write_config
from saccade.data.readers.generated import DATES
from saccade.data.readers.hub import PREFIX, parts
from saccade.tasks import Task

HEADING = "Every argument of this run."
UNFINISHED = {"config.yaml", "provenance.json", "task", "data", "metrics.jsonl", "checkpoints", "logs"}
"""What a training makes before its model; the card comes after it."""
FIXED = ("model.", "task.", "data.", "trainer.batch_tokens", "trainer.seed")
"""What a training cannot change on its way: its weights, its examples and their order."""


def check_output(folder: Path) -> None:
    """Raises if a new run would overwrite anything but a training that did not come to its first checkpoint."""
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file; the output must be a folder.")
    names = {path.name for path in folder.iterdir() if not path.name.startswith(".")} if folder.exists() else set()
    if not names:
        return
    if (folder / "checkpoints").is_dir() and _is_ours(folder / "config.yaml"):
        return  # the trainer says whether there is anything to resume
    foreign = names - UNFINISHED if _is_ours(folder / "config.yaml") else names
    if foreign:
        listed = ", ".join(sorted(foreign)[:5]) + (", ..." if len(foreign) > 5 else "")
        raise FileExistsError(f"{folder} is not empty (it holds {listed}): choose another folder for the output.")


def check_run(folder: str | os.PathLike[str]) -> Path:
    """The folder as a path; raises unless a training made it."""
    path = Path(folder)
    if not (path / "config.yaml").is_file():
        raise FileNotFoundError(f"{path} is not a run: it has no config.yaml.")
    return path


def check_unchanged(old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Raises if a resumed run is given another model, task, data or order of the data than it was begun with."""
    before, after = dict(_flat(old)), dict(_flat(new))
    for key in {**before, **after}:
        if key.startswith(FIXED) and before.get(key) != after.get(key):
            raise ConfigError(
                f"{key} was {before.get(key)!r} when this run began and cannot become {after.get(key)!r}: "
                "leave it as it was, or train anew in another folder."
            )


def with_absolute_paths(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration with data files that are found from any folder."""
    data = config.get("data")
    if not isinstance(data, Mapping):
        return dict(config)
    changed = {split: _absolute(data[split]) for split in ("train", "valid") if data.get(split)}
    return {**config, "data": {**data, **changed}}


def save_config(folder: Path, plain: Mapping[str, Any]) -> None:
    """Writes `config.yaml`; the run is unsealed until its training ends."""
    (folder / CHECKSUMS).unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    write_file(folder / "config.yaml", write_config(plain, heading=HEADING))


def save_task(task: Task, folder: Path) -> None:
    """Writes what the task learnt, all of it or nothing."""
    with tempfile.TemporaryDirectory() as made:
        task.save(made)
        files = {path.relative_to(made).as_posix(): path.read_bytes() for path in _files(Path(made))}
    write_folder(folder, {**files})


def seal_run(folder: Path) -> None:
    """Writes the sums of all that `load` reads."""
    seal(folder, _sealed(folder))


def verify_run(folder: Path) -> None:
    """Raises `ArtifactError` if a file of a sealed run is not what was written."""
    if not (folder / CHECKSUMS).exists():  # its training goes on
        return
    try:
        verify(folder, required=_sealed(folder))
    except ArtifactError as error:
        raise ArtifactError(
            f"{error} Copy the run again from where it came; if the change is yours, delete {folder / CHECKSUMS}."
        ) from None


def _sealed(folder: Path) -> list[str]:
    task = [path.relative_to(folder).as_posix() for path in _files(folder / "task")]
    return ["model.safetensors", "config.yaml", *task]


def _is_ours(config: Path) -> bool:
    return config.is_file() and config.read_bytes().startswith(f"# {HEADING}".encode())


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in config.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _absolute(files: Any) -> Any:
    if isinstance(files, list | tuple):
        return [_absolute(name) for name in files]
    name = os.fspath(files)
    if name.startswith(DATES):
        return name
    if name.startswith(PREFIX):
        place = parts(name)[0]
        if not os.path.exists(place):  # on the hub
            return name
        return PREFIX + os.path.abspath(place) + name.removeprefix(PREFIX + place)
    if os.path.exists(name) or "," not in name:
        return os.path.abspath(name)
    if "," in os.getcwd():  # the parts could not be told apart any more
        return name
    return ",".join(os.path.abspath(part.strip()) for part in name.split(","))
