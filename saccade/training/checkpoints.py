"""Checkpoints: everything that a training needs to resume exactly where it was, in folders that survive a crash."""

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
    JsonObject,
    pack_tensors,
    read_json,
    read_tensors,
    remove_folder,
    restore_folders,
    shapes_of,
    verify,
    write_folder,
)

NAME = re.compile(r"step-(\d{8,12})", re.ASCII)


class Checkpoint(NamedTuple):
    """A training after one of its steps."""

    step: int
    weights: dict[str, Tensor]
    average: dict[str, Tensor] | None
    """The moving average of the weights, if one is kept."""
    optimiser: dict[str, Any]
    """The optimiser's `state_dict`."""
    state: dict[str, Any]
    """The rest, in JSON's types: random number generators, position in the data, schedule, best score."""
    carried: dict[str, Tensor] = {}  # noqa: RUF012 (never written to)
    """The state that the model carries while reading a long text (see `Carrying`)."""

    @property
    def chosen(self) -> dict[str, Tensor]:
        """The weights that were validated at this step: the average if there is one."""
        return self.weights if self.average is None else self.average


class Checkpoints:
    """The checkpoints of one training: `step-00000120/` and so on.

    Each folder is written under a hidden name, synced and renamed, and contains the SHA-256 of its files. If one is
    damaged, the one before it is used, with a warning.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, step: int) -> Path:
        return self.folder / f"step-{step:08d}"

    def steps(self) -> list[int]:
        """The steps after which a checkpoint was made, in order; folders with other names are not ours."""
        found = (NAME.fullmatch(path.name) for path in self.folder.glob("step-*"))
        steps = {int(match[1]) for match in found if match}
        return sorted(step for step in steps if self.path(step).is_dir())

    def save(self, checkpoint: Checkpoint) -> Path:
        """Writes a checkpoint; if that fails, the others stay as they were and the error names the last of them."""
        tensors, options = pack_optimiser(checkpoint.optimiser)
        files: dict[str, bytes | Callable[[], bytes]] = {
            "model.safetensors": lambda: pack_tensors(checkpoint.weights),
            "optimiser.safetensors": lambda: pack_tensors(tensors),
            "state.json": _as_json({"step": checkpoint.step, "optimiser": options, **checkpoint.state}),
        }
        average = checkpoint.average
        if average is not None:
            files["average.safetensors"] = lambda: pack_tensors(average)
        if checkpoint.carried:
            files["carried.safetensors"] = lambda: pack_tensors(checkpoint.carried)
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
        average, carried = path / "average.safetensors", path / "carried.safetensors"
        files = ["model.safetensors", "optimiser.safetensors", "state.json"]
        files += [file.name for file in (average, carried) if file.exists()]
        verify(path, required=files)
        state = JsonObject(read_json(path / "state.json"), str(path / "state.json"))
        if state.take("step", int) != step:
            raise state.wrong("step", f"is {state.values['step']}, but the folder is {path.name}")
        weights = read_tensors(path / "model.safetensors")
        optimiser = unpack_optimiser(read_tensors(path / "optimiser.safetensors"), state.inner("optimiser"))
        return Checkpoint(
            step=step,
            weights=weights,
            average=read_tensors(average, shapes_of(weights)) if average.exists() else None,
            optimiser=optimiser,
            state={key: value for key, value in state.values.items() if key not in ("step", "optimiser")},
            carried=read_tensors(carried) if carried.exists() else {},
        )

    def latest(self, use: Callable[[Checkpoint], None] | None = None) -> Checkpoint | None:
        """The newest checkpoint that can be used; None if there are none, an error if all are unusable.

        Args:
            use: called with a checkpoint; if it raises `ArtifactError`, the checkpoint before it is tried.
        """
        restore_folders(self.folder)
        steps = self.steps()
        problem: ArtifactError | None = None
        for step in reversed(steps):
            try:
                checkpoint = self.load(step)
                if use is not None:
                    use(checkpoint)
                return checkpoint
            except ArtifactError as error:
                problem = problem or error
                if step != steps[0]:
                    warnings.warn(f"{error} Trying the checkpoint before {self.path(step).name}.", stacklevel=2)
        if problem is not None:
            raise ArtifactError(
                f"{'The only checkpoint' if len(steps) == 1 else f'None of the {len(steps)} checkpoints'} in "
                f"{self.folder} can{'not' * (len(steps) == 1)} be used: {problem} "
                "Restore one from a copy, or start again in another folder."
            )
        return None

    def drop_after(self, step: int) -> None:
        """Removes the checkpoints of later steps and the remains of a crash: training resumes from `step`."""
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
    """Splits an optimiser's `state_dict` into named tensors, and the rest in JSON's types."""
    tensors: dict[str, Tensor] = {}
    numbers: dict[str, Any] = {}
    for parameter, values in state["state"].items():
        for name, value in values.items():
            (tensors if isinstance(value, Tensor) else numbers)[f"{parameter}.{name}"] = value
    return tensors, {"param_groups": state["param_groups"], "numbers": numbers}


def unpack_optimiser(tensors: dict[str, Tensor], options: JsonObject) -> dict[str, Any]:
    """The inverse of `pack_optimiser`; `ArtifactError` if it is not what that function wrote."""
    state: dict[int, dict[str, Any]] = {}
    for key, value in {**tensors, **options.inner("numbers").values}.items():
        parameter, _, name = key.partition(".")
        if not re.fullmatch(r"[0-9]{1,9}", parameter) or not name:
            raise options.wrong(key[:80], "is not a parameter's number and the name of a value")
        state.setdefault(int(parameter), {})[name] = value
    groups = []
    for place, values in enumerate(options.take_list("param_groups", dict)):
        group = JsonObject(values, options.where, f"{options.inside}.param_groups[{place}]")
        if "betas" in values:
            group.take_list("betas", float, length=2)
        groups.append({name: tuple(value) if name == "betas" else value for name, value in values.items()})
    return {"state": state, "param_groups": groups}


def _as_json(value: dict[str, Any]) -> bytes:
    def plain(other: object) -> object:
        if isinstance(other, Tensor | torch.Size):
            return list(other) if isinstance(other, torch.Size) else other.tolist()
        if hasattr(other, "item"):  # a NumPy scalar
            return other.item()
        raise TypeError(f"{other!r} does not fit into a checkpoint: use tensors and values that JSON can represent.")

    return (json.dumps(value, default=plain) + "\n").encode()
