"""The files of a run folder, and how they are protected."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple

from saccade.artifacts import (
    CHECKSUMS,
    ArtifactError,
    JsonObject,
    fill_folder,
    make_folder,
    open_regular,
    read_json,
    seal,
    verify,
    write_file,
)
from saccade.configuration import ConfigError, write_config
from saccade.data.readers import absolute
from saccade.registry import closest
from saccade.tasks import Task
from saccade.training import Checkpoints

HEADING = "Every argument of this run."
WEIGHTS = "model.safetensors"
UNFINISHED = {"config.yaml", "provenance.json", "task", "data", "metrics.jsonl", "checkpoints", "logs"}
"""What training writes before the model; the card comes after it."""
FIXED = ("model.", "task.", "data.", "trainer.batch_tokens", "trainer.seed")
"""What a resumed training cannot change: its weights, its examples and their order."""


class ChosenWeights(NamedTuple):
    """Which weights of a run to load."""

    file: Path
    remark: str
    """What the user should know about them; empty for those of a finished training."""


def chosen_weights(folder: Path) -> ChosenWeights:
    """The weights of a finished training, or of the best checkpoint of one that was interrupted."""
    if (folder / WEIGHTS).is_file():
        return ChosenWeights(folder / WEIGHTS, "")
    checkpoints = Checkpoints(folder / "checkpoints")
    steps, problem = checkpoints.steps(), None
    for step in reversed(steps):
        path = checkpoints.path(step)
        try:
            chosen, file = step, _sealed_weights(path, "state.json")
            state = JsonObject(read_json(path / "state.json"), str(path / "state.json"))
            best = state.inner("position").take("best_step", int, NoneType)
        except ArtifactError as error:
            problem = problem or error
            continue
        if best in steps:
            with contextlib.suppress(ArtifactError):  # damaged: the last one is whole
                chosen, file = best, _sealed_weights(checkpoints.path(best))
        which = "best" if chosen == best else "last"
        return ChosenWeights(
            file,
            f"{folder}: training was interrupted after step {step}, so this is its {which} checkpoint so far, of step "
            f"{chosen}. To continue: saccade train --resume {folder}",
        )
    if problem is not None:
        raise ArtifactError(f"{folder} has no model, and none of its checkpoints can be used: {problem}")
    raise FileNotFoundError(
        f"{folder} has no model and no checkpoint yet: train it first, with saccade train --resume {folder}"
    )


def _sealed_weights(checkpoint: Path, *others: str) -> Path:
    """The file of the weights that were validated: the average if there is one."""
    average = checkpoint / "average.safetensors"
    file = average if average.is_file() else checkpoint / WEIGHTS
    verify(checkpoint, required=[file.name, *others])
    return file


def check_output(folder: Path) -> None:
    """Raises if a new run would overwrite anything but a training that never reached its first checkpoint."""
    if "\0" in str(folder):
        raise ConfigError(f"--output: {str(folder)!r:.60} is not the name of a folder.")
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file; the output must be a folder.")
    names = {path.name for path in folder.iterdir() if not path.name.startswith(".")} if folder.exists() else set()
    if not names or (names == {"data"} and _is_stored(folder / "data")):  # killed while it read the data
        return
    if (folder / "checkpoints").is_dir() and _is_ours(folder / "config.yaml"):
        return  # the trainer checks whether there is anything to resume
    foreign = names - UNFINISHED if _is_ours(folder / "config.yaml") else names
    if foreign:
        listed = ", ".join(sorted(foreign)[:5]) + (", ..." if len(foreign) > 5 else "")
        raise FileExistsError(f"{folder} is not empty (it contains {listed}): choose another folder for the output.")


def check_run(folder: str | os.PathLike[str]) -> Path:
    """The folder as a path; raises unless a training made it."""
    path = Path(folder)
    if not os.fspath(folder) or "\0" in str(path):
        raise FileNotFoundError(f"{str(folder)!r:.60} is not a run: name the folder of one.")
    if not path.exists():
        close = closest(path.name, _runs_in(path.parent))
        hint = "name the folder of a run." if close is None else f"did you mean {path.parent / close}?"
        raise FileNotFoundError(
            f"There is no folder {path}: {hint}{_listed_runs(path.parent) if close is None else ''}"
        )
    if not (path / "config.yaml").is_file():
        if not path.is_dir():
            raise FileNotFoundError(f"{path} is a file: name the folder of a run.")
        if (path / "config.json").is_file():
            raise FileNotFoundError(
                f"{path} is not a run; of other libraries' models, only a GPT-2 can be used like a run: its "
                'config.json must have "model_type": "gpt2". `saccade inspect` shows what others attend to, and a '
                "BERT can start a training (--init-from)."
            )
        raise FileNotFoundError(f"{path} is not a run: it has no config.yaml.{_listed_runs(path)}")
    return path


def _runs_in(folder: Path) -> list[str]:
    return sorted(each.parent.name for each in folder.glob("*/config.yaml")) if folder.is_dir() else []


def _listed_runs(folder: Path) -> str:
    inside = _runs_in(folder)
    more = f" and {len(inside) - 5} more" if len(inside) > 5 else ""
    place = "This folder" if folder == Path() else folder
    return f" {place} contains runs: {', '.join(inside[:5])}{more}." if inside else ""


def check_unchanged(old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Raises if a resumed run is given another model, task, data or order of the data than it was started with."""
    before, after = dict(_flat(old)), dict(_flat(new))
    for key in {**before, **after}:
        if key.startswith(FIXED) and before.get(key) != after.get(key):
            raise ConfigError(
                f"{key} was {before.get(key)!r} when this run started and cannot become {after.get(key)!r}: "
                "leave it as it was, or train in another folder."
            )


def check_same(folder: Path, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Raises if a folder contains a training with other arguments than those given now."""
    before, after = dict(_flat(old)), dict(_flat(new))
    for key in {**before, **after}:
        if before.get(key) != after.get(key):
            raise ConfigError(
                f"{folder} was trained with {key} {before.get(key)!r}, not {after.get(key)!r}: give the same arguments "
                "again, or another folder."
            )


def with_absolute_paths(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration with paths of data files that do not depend on the working folder."""
    data = config.get("data")
    if not isinstance(data, Mapping):
        return dict(config)
    changed = {split: absolute(data[split]) for split in ("train", "valid") if data.get(split)}
    return {**config, "data": {**data, **changed}}


def save_config(folder: Path, plain: Mapping[str, Any]) -> None:
    """Writes `config.yaml`; the run is unsealed until training ends."""
    (folder / CHECKSUMS).unlink(missing_ok=True)
    make_folder(folder)
    write_file(folder / "config.yaml", write_config(plain, heading=HEADING))


def save_task(task: Task, folder: Path) -> None:
    """Writes what the task learned, all of it or nothing."""
    fill_folder(folder, task.save)


def seal_run(folder: Path) -> None:
    """Writes the checksums of everything that `load` reads."""
    seal(folder, [WEIGHTS, *_read_by_load(folder)])


def verify_run(folder: Path) -> None:
    """Raises `ArtifactError` if a file of a sealed run was changed.

    A training that has not ended has sealed what its task learned, and its checkpoints.
    """
    if not (folder / CHECKSUMS).exists():
        if (folder / "task" / CHECKSUMS).exists():
            verify_task(folder / "task")
        return
    try:
        verify(folder, required=[WEIGHTS, *_read_by_load(folder)])
    except ArtifactError as error:
        again = "Copy the run again from its origin"
        if WEIGHTS in str(error) and Checkpoints(folder / "checkpoints").steps():
            again = f"Make it again from the last checkpoint (saccade train --resume {folder}), or copy the run again"
        raise ArtifactError(f"{error} {again}; if the change is yours, delete {folder / CHECKSUMS}.") from None


def verify_task(folder: Path) -> None:
    """The same for what a task learned."""
    names = [path.relative_to(folder).as_posix() for path in _files(folder)]
    try:
        verify(folder, required=[name for name in names if name != CHECKSUMS])
    except ArtifactError as error:
        raise ArtifactError(
            f"{error} Restore it from a copy, or delete {folder} and resume the training, which learns it again."
        ) from None


def files_of(folder: Path) -> list[Path]:
    """Everything that `load` reads."""
    return [chosen_weights(folder).file, *(folder / name for name in _read_by_load(folder))]


def _read_by_load(folder: Path) -> list[str]:
    return ["config.yaml", *(path.relative_to(folder).as_posix() for path in _files(folder / "task"))]


def learned_alike(folder: Path, other: Path) -> bool:
    """Whether two runs learned the same from their data: vocabularies, label names."""
    return _learned(folder) == _learned(other)


def _learned(folder: Path) -> dict[str, bytes]:
    found = {path.relative_to(folder).as_posix(): path for path in _files(folder / "task")}
    return {name: path.read_bytes() for name, path in found.items() if path.name not in (CHECKSUMS, "lengths.json")}


def _is_stored(folder: Path) -> bool:
    return folder.is_dir() and all(".arrow" in path.name or CHECKSUMS in path.name for path in folder.iterdir())


def _is_ours(config: Path) -> bool:
    heading = f"# {HEADING}".encode()
    if not config.is_file():
        return False
    with open_regular(config) as file:
        return file.read(len(heading)) == heading


def _files(folder: Path) -> list[Path]:
    if folder.is_symlink():  # it may lead to the whole disk
        raise ArtifactError(f"{folder} is a link, not a folder: replace it with a copy of the original.")
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in config.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
