"""The tensors of one call, in memory or in a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from saccade.artifacts.tensors import read_tensors
from saccade.interpretation.recording.positions import FOLLOWING, Positions
from saccade.interpretation.recording.recipes import Recipe, Shape, Tensors
from saccade.kernels.private_torch import version, versions

PARAMETERS = frozenset(
    (
        *("weight", "bias", "query_weight", "key_weight", "query_bias", "key_bias"),
        *("norm_weight", "norm_bias", "extra_key"),
    )
)
"""Parts that change only when the model learns."""

OVERWRITTEN = -2
"""A version number that no tensor has."""


class Cache:
    """The keys of a cache that grows: those of its last call, which begin with those of the calls before.

    They were never changed in place when they were kept.

    Attributes:
        key: (*batch, keys, dim).
        grown: what the model has made last by appending something to these keys.
    """

    __slots__ = ("grown", "key", "version")

    def __init__(self, key: Tensor) -> None:
        self.key = key
        self.version = 0
        self.grown: Tensor | None = None
        GROWING[id(key)] = self

    def grow(self, key: Tensor) -> bool:
        """Keeps keys, which were never changed in place, if they were made by appending to these."""
        if self.grown is not key or version(self.key) != self.version:
            return False
        self.replace(key)
        return True

    def replace(self, key: Tensor) -> None:
        """Keeps other keys, which were never changed in place and begin with these."""
        GROWING.pop(id(self.key), None)
        GROWING[id(key)] = self
        self.key, self.grown = key, None

    def end(self) -> None:
        """It grows no more."""
        GROWING.pop(id(self.key), None)
        self.grown = None

    def continues(self, key: Tensor) -> bool:
        """Whether keys, which were never changed in place, begin with these.

        They were made by appending to these, or they have to be equal. On other devices than the CPU the model would
        have to wait for that.
        """
        if self.grown is key and version(self.key) == self.version:
            return True
        old, count = self.key, self.key.shape[-2]
        if key.shape[-2] <= count or key.dim() != old.dim() or key.dtype != old.dtype or key.device.type != "cpu":
            return False
        first = key.narrow(-2, 0, count)
        return first.shape == old.shape and version(old) == self.version and torch.equal(first, old)

    def __getstate__(self) -> tuple[Tensor, bool]:
        return self.key, version(self.key) != self.version

    def __setstate__(self, state: tuple[Tensor, bool]) -> None:
        self.key, overwritten = state
        self.grown = None
        self.version = OVERWRITTEN if overwritten else version(self.key)


GROWING: dict[int, Cache] = {}
"""The caches of all recordings, by the ids of their keys. Of several with the same keys, one is found."""


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
        self._versions = versions(tensors)
        self._cache: Cache | None = None
        self._keys = 0

    @classmethod
    def step(cls, recipe: Recipe, tensors: Tensors, cache: Cache, keys: int, run: int) -> Kept:
        """A call whose keys are the first of a cache, and whose tensors had never been changed in place."""
        kept = cls(recipe, {})
        kept.replace(recipe, tensors, dict.fromkeys(tensors, 0))
        kept._cache, kept._keys, kept.run = cache, keys, run
        return kept

    def hold(self, tensors: Tensors) -> None:
        """Keeps these tensors."""
        self.replace(self.recipe, tensors, versions(tensors))

    def replace(self, recipe: Recipe, tensors: Tensors, versions: dict[str, int]) -> None:
        """Keeps other tensors that give the same weights; these and their versions may belong to several calls."""
        self.recipe, self._tensors, self._versions = recipe, tensors, versions
        self._cache, self._keys = None, 0

    def lasting(self, part: str) -> Tensor | None:
        """A tensor in memory that had never been changed in place when it was kept; None otherwise."""
        return None if self._versions.get(part) else self._tensors.get(part)

    def share(self, cache: Cache) -> None:
        """Keeps the keys of a cache, which begin with those of this call."""
        self._keys = self._tensors.pop("key").shape[-2]
        del self._versions["key"]
        self._cache = cache

    @property
    def tensors(self) -> Tensors:
        """The tensors in memory."""
        if self._cache is None:
            return self._tensors
        return {**self._tensors, "key": self._cache.key.narrow(-2, 0, self._keys)}

    def held(self) -> Iterator[tuple[str, Tensor]]:
        """The parts in memory, with all that is kept of the keys of a cache."""
        yield from self._tensors.items()
        if self._cache is not None:
            yield "key", self._cache.key

    @property
    def written(self) -> bool:
        """Whether any of the tensors had been changed in place before it was kept."""
        return any(self._versions.values())

    def __getstate__(self) -> tuple[Any, ...]:
        """For pickles and copies, whose tensors count their versions anew; what was overwritten stays an error."""
        cached = (self._cache, self._keys)
        return self.recipe, self._tensors, cached, self.shape, self.run, self.positions, self.files, self.overwritten()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.recipe, self._tensors, cached, self.shape, self.run, self.positions, self.files, overwritten = state
        self._cache, self._keys = cached
        self._versions = {**versions(self._tensors), **dict.fromkeys(overwritten, OVERWRITTEN)}

    def overwritten(self) -> list[str]:
        """The parts that were changed in place since they were kept."""
        found = [part for part, tensor in self._tensors.items() if version(tensor) != self._versions[part]]
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

    def copy_tensors(self, copies: dict[Any, Tensor], private: dict[int, Tensor]) -> None:
        """Copies what is about to be overwritten.

        Args:
            copies: those of other calls that share parameters.
            private: all copies so far, by their ids, which nobody else overwrites.
        """
        held, known = dict(self._tensors), dict(self._versions)
        for part, tensor in self._tensors.items():
            old = id(tensor) not in private and (known[part] or part in PARAMETERS)
            if old and version(tensor) == known[part]:
                place = (tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
                if place not in copies:
                    copies[place] = clone = tensor.clone()
                    private[id(clone)] = clone
                held[part], known[part] = copies[place], version(copies[place])
        self._tensors, self._versions = held, known

    def spill(self, files: dict[str, Path]) -> None:
        """Keeps files instead of tensors."""
        self.files = files
        self.replace(self.recipe, {}, {})
