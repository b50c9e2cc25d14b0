"""The tensors of one call, in memory or in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from saccade.artifacts.tensors import read_tensors
from saccade.interpretation.recording.positions import FOLLOWING, Positions
from saccade.interpretation.recording.recipes import Recipe, Shape, Tensors
from saccade.kernels.private_torch import version

OVERWRITTEN = -2
"""A version that no tensor has."""


class Cache:
    """The keys of a cache that grows: those of its last call, which begin with those of the calls before.

    Attributes:
        key: (*batch, keys, dim).
    """

    __slots__ = ("key", "version")

    def __init__(self, key: Tensor) -> None:
        self.key = key
        self.version = version(key)

    def continues(self, key: Tensor) -> bool:
        """Whether keys, which were never changed in place, begin with these; they are then kept instead.

        They have to be equal. On other devices than the CPU the model would have to wait for that.
        """
        old, count = self.key, self.key.shape[-2]
        if key.shape[-2] <= count or key.dim() != old.dim() or key.dtype != old.dtype or key.device.type != "cpu":
            return False
        first = key.narrow(-2, 0, count)
        if first.shape != old.shape or version(old) != self.version or not torch.equal(first, old):
            return False
        self.key, self.version = key, 0
        return True

    def __getstate__(self) -> tuple[Tensor, bool]:
        return self.key, version(self.key) != self.version

    def __setstate__(self, state: tuple[Tensor, bool]) -> None:
        self.key, overwritten = state
        self.version = OVERWRITTEN if overwritten else version(self.key)


class Kept:
    """One call: its tensors, and how to compute its weights from them.

    In memory they are references to the model's own tensors; those that had been written to before are copies. A later
    change shows in their version, and reading them is then an error.

    Attributes:
        run: the number of the run of the model that made the call, see `Runs`.
        positions: of its keys and queries; see `Backlog`, which finds them.
        files: the file of each tensor, if they are in files.
    """

    __slots__ = ("_cache", "_keys", "_tensors", "_versions", "files", "positions", "recipe", "run", "shape")

    def __init__(self, recipe: Recipe, tensors: Tensors) -> None:
        self.recipe = recipe
        self.shape: Shape | None = None
        self.run = 0
        self.positions: Positions = FOLLOWING
        self.files: dict[str, Path] | None = None
        self._tensors = tensors
        self._versions = [version(tensor) for tensor in tensors.values()]
        self._cache: Cache | None = None
        self._keys = 0

    def hold(self, tensors: Tensors) -> None:
        """Keeps these tensors."""
        self.replace(self.recipe, tensors, [version(tensor) for tensor in tensors.values()])

    def replace(self, recipe: Recipe, tensors: Tensors, versions: list[int]) -> None:
        """Keeps other tensors that give the same weights; these and their versions may belong to several calls."""
        self.recipe, self._tensors, self._versions = recipe, tensors, versions
        self._cache, self._keys = None, 0

    def share(self, cache: Cache) -> None:
        """Keeps the keys of a cache, which begin with those of this call."""
        place = list(self._tensors).index("key")
        self._keys = self._tensors.pop("key").shape[-2]
        del self._versions[place]
        self._cache = cache

    @property
    def tensors(self) -> Tensors:
        """The tensors in memory."""
        if self._cache is None:
            return self._tensors
        return {**self._tensors, "key": self._cache.key.narrow(-2, 0, self._keys)}

    @property
    def written(self) -> bool:
        """Whether any of the tensors had been changed in place before it was kept."""
        return any(self._versions)

    def __getstate__(self) -> tuple[Any, ...]:
        """For pickles and copies, whose tensors count their versions anew; what was overwritten stays an error."""
        cached = (self._cache, self._keys)
        return self.recipe, self._tensors, cached, self.shape, self.run, self.positions, self.files, self.overwritten()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.recipe, self._tensors, cached, self.shape, self.run, self.positions, self.files, overwritten = state
        self._cache, self._keys = cached
        self._versions = [OVERWRITTEN if part in overwritten else version(each) for part, each in self._tensors.items()]

    def overwritten(self) -> list[str]:
        """The parts that were changed in place since they were kept."""
        pairs = zip(self._tensors.items(), self._versions, strict=True)
        found = [part for (part, tensor), before in pairs if version(tensor) != before]
        if self._cache is not None and version(self._cache.key) != self._cache.version:
            found.append("key")
        return found

    def load(self, name: str) -> Tensors:
        """The tensors; `name` is the name of the call in errors."""
        for part in self.overwritten():
            raise RuntimeError(
                f"{part} of {name!r} was changed in place since it was recorded, so its weights can no longer be "
                "computed: read them before parameters or caches change, or record with "
                'reduce="mean" or spill=folder.'
            )
        if self.files is None:
            return self.tensors
        found = {path: read_tensors(path) for path in set(self.files.values())}
        return {part: found[path][part] for part, path in self.files.items()}

    def copy_tensors(self, copies: dict[Any, Tensor]) -> None:
        """Copies what is about to be overwritten; `copies` holds those of other calls, which share parameters."""
        held, versions = dict(self._tensors), list(self._versions)
        for number, (part, tensor) in enumerate(self._tensors.items()):
            if versions[number] and version(tensor) == versions[number]:
                place = (tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
                if place not in copies:
                    copies[place] = tensor.clone()
                held[part], versions[number] = copies[place], version(copies[place])
        self._tensors, self._versions = held, versions

    def spill(self, files: dict[str, Path]) -> None:
        """Keeps files instead of tensors."""
        self.files = files
        self.replace(self.recipe, {}, [])
