"""The tensors of one call, in memory or in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from saccade.artifacts.tensors import read_tensors
from saccade.interpretation.recording.positions import Positions
from saccade.interpretation.recording.recipes import Recipe, Shape, Tensors
from saccade.kernels.private_torch import version

OVERWRITTEN = -2
"""A version that no tensor has."""


class Shared:
    """Tensors of several calls."""

    def __init__(self, tensors: Tensors) -> None:
        self.tensors = tensors
        self.versions = {part: version(tensor) for part, tensor in tensors.items()}


class Kept:
    """One call: its tensors, and how to compute its weights from them.

    In memory they are references to the model's own tensors; those that had been written to before are copies. A later
    change shows in their version, and reading them is then an error.

    Attributes:
        run: the number of the run of the model that made the call, see `Runs`.
        positions: of its keys and queries.
        files: the file of each tensor, if they are in files.
    """

    __slots__ = ("_versions", "files", "positions", "recipe", "run", "shape", "tensors")

    def __init__(self, recipe: Recipe, tensors: Tensors) -> None:
        self.recipe = recipe
        self.shape: Shape | None = None
        self.run = 0
        self.positions = Positions()  # queries follow those of the call before
        self.files: dict[str, Path] = {}
        self.hold(tensors)

    def hold(self, tensors: Tensors) -> None:
        """Keeps these tensors."""
        self.tensors = tensors
        self._versions = {part: version(tensor) for part, tensor in tensors.items()}

    @property
    def written(self) -> bool:
        """Whether any of the tensors had been changed in place before it was kept."""
        return any(self._versions.values())

    def replace(self, recipe: Recipe, shared: Shared) -> None:
        """Keeps other tensors that give the same weights."""
        self.recipe, self.tensors, self._versions = recipe, shared.tensors, shared.versions

    def __getstate__(self) -> tuple[Any, ...]:
        """For pickles and copies, whose tensors count their versions anew; what was overwritten stays an error."""
        return self.recipe, self.tensors, self.shape, self.run, self.positions, self.files, self.overwritten()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.recipe, self.tensors, self.shape, self.run, self.positions, self.files, overwritten = state
        self._versions = {
            part: OVERWRITTEN if part in overwritten else version(each) for part, each in self.tensors.items()
        }

    def overwritten(self) -> list[str]:
        """The parts that were changed in place since they were kept."""
        return [part for part, tensor in self.tensors.items() if version(tensor) != self._versions[part]]

    def load(self, name: str) -> Tensors:
        """The tensors; `name` is the name of the call in errors."""
        for part in self.overwritten():
            raise RuntimeError(
                f"{part} of {name!r} was changed in place since it was recorded, so its weights can no longer be "
                "computed: read them before parameters or caches change, or record with "
                'reduce="mean" or spill=folder.'
            )
        if not self.files:
            return self.tensors
        found = {path: read_tensors(path) for path in set(self.files.values())}
        return {part: found[path][part] for part, path in self.files.items()}

    def copy_tensors(self, copies: dict[Any, Tensor]) -> None:
        """Copies what is about to be overwritten; `copies` holds those of other calls, which share parameters."""
        for part, tensor in self.tensors.items():
            seen = self._versions[part]
            if seen and version(tensor) == seen:
                place = (tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
                if place not in copies:
                    copies[place] = tensor.clone()
                self.tensors[part] = copies[place]
                self._versions[part] = version(copies[place])

    def spill(self, files: dict[str, Path]) -> None:
        """Keeps files instead of tensors."""
        self.files = files
        self.tensors, self._versions = {}, {}
