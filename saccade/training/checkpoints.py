"""Checkpoints: everything that a training needs to go on exactly where it was, in folders that survive a crash."""

import json
import re
import warnings
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from saccade.artifacts import (
    ArtifactError,
    pack_tensors,
    read_tensors,
    remove_folder,
    restore_folders,
    verify,
    write_folder,
)


class Checkpoint(NamedTuple):
    """A training after one of its steps."""

    step: int
    weights: dict[str, Tensor]
    average: dict[str, Tensor] | None
    """The moving average of the weights, if one is kept."""
    optimiser: dict[str, Any]
    """The optimiser's `state_dict`."""
    state: dict[str, Any]
    """All the rest, as JSON can hold it: random number generators, position in the data, schedule, best figure."""

    @property
    def chosen(self) -> dict[str, Tensor]:
        """The weights that were validated at this step, and that a user would want."""
        return self.weights if self.average is None else self.average


class Checkpoints:
    """The checkpoints of one training: `step-00000120/` and so on.

    Each folder is written beside the others, synced and renamed, with the SHA-256 of its files; a damaged one is
    passed over for the one before it, with a warning.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, step: int) -> Path:
        return self.folder / f"step-{step:08d}"

    def steps(self) -> list[int]:
        """The steps after which a checkpoint was made, in order."""
        found = (re.fullmatch(r"step-(\d+)", path.name) for path in self.folder.glob("step-*"))
        return sorted(int(match[1]) for match in found if match)

    def save(self, checkpoint: Checkpoint) -> Path:
        """Writes a checkpoint; if that fails, the others are as they were and the error names the last of them."""
        tensors, options = pack_optimiser(checkpoint.optimiser)
        files: dict[str, bytes | Callable[[], bytes]] = {
            "model.safetensors": lambda: pack_tensors(checkpoint.weights),
            "optimiser.safetensors": lambda: pack_tensors(tensors),
            "state.json": _as_json({"step": checkpoint.step, "optimiser": options, **checkpoint.state}),
        }
        average = checkpoint.average
        if average is not None:
            files["average.safetensors"] = lambda: pack_tensors(average)
        try:
            return write_folder(self.path(checkpoint.step), files)
        except ArtifactError as error:
            steps = self.steps()
            last = f"The last good checkpoint is {self.path(steps[-1])}." if steps else "There is no earlier one."
            raise ArtifactError(
                error.errno, f"Could not save the checkpoint of step {checkpoint.step}: {error.strerror}. {last}"
            ) from error

    def load(self, step: int) -> Checkpoint:
        """The checkpoint of one step, or `ArtifactError` if it is damaged."""
        path = self.path(step)
        verify(path)
        state = json.loads((path / "state.json").read_bytes())
        average = path / "average.safetensors"
        return Checkpoint(
            step=state.pop("step"),
            weights=read_tensors(path / "model.safetensors"),
            average=read_tensors(average) if average.exists() else None,
            optimiser=unpack_optimiser(read_tensors(path / "optimiser.safetensors"), state.pop("optimiser")),
            state=state,
        )

    def latest(self) -> Checkpoint | None:
        """The newest checkpoint that is whole; None if there are none, an error if all are damaged."""
        restore_folders(self.folder)
        steps = self.steps()
        for step in reversed(steps):
            try:
                return self.load(step)
            except ArtifactError as error:
                warnings.warn(f"{error} The checkpoint before it is used.", stacklevel=2)
        if steps:
            raise ArtifactError(f"All checkpoints in {self.folder} are damaged: start again in another folder.")
        return None

    def drop_after(self, step: int) -> None:
        """Removes the checkpoints of later steps and what a crash left: training goes on from `step`."""
        restore_folders(self.folder)
        for later in self.steps():
            if later > step:
                remove_folder(self.path(later))

    def prune(self, *, keep: int, pinned: Collection[int] = ()) -> None:
        """Removes all but the last `keep` and the pinned ones."""
        for step in self.steps()[:-keep]:
            if step not in pinned:
                remove_folder(self.path(step))


def pack_optimiser(state: dict[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """An optimiser's `state_dict` as named tensors, and the rest as JSON can hold it."""
    tensors: dict[str, Tensor] = {}
    numbers: dict[str, Any] = {}
    for parameter, values in state["state"].items():
        for name, value in values.items():
            (tensors if isinstance(value, Tensor) else numbers)[f"{parameter}.{name}"] = value
    return tensors, {"param_groups": state["param_groups"], "numbers": numbers}


def unpack_optimiser(tensors: dict[str, Tensor], options: dict[str, Any]) -> dict[str, Any]:
    """The inverse of `pack_optimiser`."""
    state: dict[int, dict[str, Any]] = {}
    for key, value in {**tensors, **options["numbers"]}.items():
        parameter, name = key.split(".", 1)
        state.setdefault(int(parameter), {})[name] = value
    groups = [
        {name: tuple(value) if name == "betas" else value for name, value in group.items()}
        for group in options["param_groups"]
    ]
    return {"state": state, "param_groups": groups}


def _as_json(value: dict[str, Any]) -> bytes:
    def plain(other: object) -> object:
        if isinstance(other, Tensor | torch.Size):
            return list(other) if isinstance(other, torch.Size) else other.tolist()
        if hasattr(other, "item"):  # a NumPy scalar
            return other.item()
        raise TypeError(f"{other!r} does not fit into a checkpoint: it must be a tensor or what JSON can hold.")

    return (json.dumps(value, default=plain) + "\n").encode()
