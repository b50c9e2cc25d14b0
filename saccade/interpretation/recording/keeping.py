"""What is kept of a call: all, or less where memory is short."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from saccade.interpretation.recording.naming import Place, path_of
from saccade.interpretation.recording.recipes import Attended, Given, Recipe, Shape, Tensors, Top

BLOCK = 1 << 24
"""So many weights are computed at a time."""

Reduction = str | tuple[str, int] | None


class Kept:
    """The tensors of one call, in memory or in a file.

    In memory they are references to the model's own tensors. A recording copies them before it sees them changed in
    place (`secure`); a change that it did not see is found by their version, and reported when they are looked at.
    """

    __slots__ = ("_files", "_versions", "shape", "tensors")

    def __init__(self, tensors: Tensors) -> None:
        self.tensors = tensors
        self.shape: Shape | None = None
        self._versions: dict[str, int] = {}
        for part, tensor in tensors.items():
            self._versions[part] = -1 if tensor.is_inference() else tensor._version
        self._files: dict[str, Path] = {}

    @property
    def may_change(self) -> bool:
        """Whether it may be overwritten: a tensor that was never changed in place most likely never will be."""
        return any(self._versions.values())

    def load(self, name: str) -> Tensors:
        """The tensors; errors call it by this name."""
        for part, tensor in self.tensors.items():
            if _version(tensor) != self._versions[part]:
                raise RuntimeError(
                    f"{part} of {name!r} was changed in place since it was recorded, so its weights cannot be "
                    "computed any more: look at them before parameters or caches change, or record with "
                    'reduce="mean" or spill=folder.'
                )
        if not self._files:
            return self.tensors
        from safetensors.torch import load_file

        return {part: load_file(path)[part] for part, path in self._files.items()}

    def secure(self, storage: int, copies: dict[Any, Tensor]) -> None:
        """Copies what lies in memory that is about to be overwritten; `copies` are those made for other calls."""
        for part, tensor in self.tensors.items():
            if storage_of(tensor) == storage and _version(tensor) == self._versions[part]:
                place = (tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
                if place not in copies:
                    copies[place] = tensor.clone()
                self.tensors[part] = copies[place]
                self._versions[part] = _version(copies[place])

    def spill(self, files: dict[str, Path]) -> None:
        self._files = files
        self.tensors, self._versions = {}, {}


@dataclass
class Keeper:
    """Says what is kept: which heads, reduced how, in which dtype, in which folder.

    Args:
        heads: their numbers; all by default.
        reduce: "mean" or "max" over the heads, or ("top_k", k): the k greatest weights of each query.
        dtype: of queries and keys, or of weights where these are kept.
        spill: a folder for files of tensors, written at once.
    """

    heads: Sequence[int] | None = None
    reduce: Reduction = None
    dtype: torch.dtype | None = None
    spill: Path | None = None

    def __post_init__(self) -> None:
        top = isinstance(self.reduce, tuple) and len(self.reduce) == 2 and self.reduce[0] == "top_k"
        if top and (not isinstance(self.reduce[1], int) or self.reduce[1] < 1):  # type: ignore[index]
            raise ValueError(f'reduce=("top_k", k) keeps k >= 1 weights of each query, got {self.reduce!r}.')
        if not top and self.reduce not in (None, "mean", "max"):
            raise ValueError(f'reduce must be "mean", "max", ("top_k", k) or None, got {self.reduce!r}.')
        if self.dtype is not None and not self.dtype.is_floating_point:
            raise ValueError(f"dtype must be a floating point one such as torch.float16, got {self.dtype}.")
        if self.spill is not None:
            self.spill.mkdir(parents=True, exist_ok=True)
            if next(self.spill.glob("*.safetensors"), None) is not None:
                raise ValueError(f"spill={str(self.spill)!r} holds .safetensors files already: give an empty folder.")
        self._masks: dict[Any, tuple[Tensor, Path]] = {}
        self._count = 0

    def keep(self, attended: Attended, place: Place) -> tuple[Recipe, Kept]:
        """What is kept of a call of the module at this place, and nothing of its graph or its parameters."""
        recipe, tensors = attended
        for part, tensor in tensors.items():
            if tensor.requires_grad or type(tensor) is not Tensor:
                tensors[part] = tensor.detach()
        if self.heads is None and self.reduce is None and self.dtype is None and self.spill is None:
            return recipe, Kept(tensors)
        with torch.no_grad():
            if self.heads is not None:
                recipe, tensors = recipe.choose(tensors, self._heads(recipe.shape(tensors)[1], place))
            recipe, tensors = recipe.resolve(tensors)
            if self.reduce is not None:
                recipe, tensors = reduced(recipe, tensors, self.reduce)
            if self.dtype is not None:
                tensors = {part: self._cast(part, tensor) for part, tensor in tensors.items()}
        kept = Kept(tensors)
        if self.spill is not None:
            kept.shape = recipe.shape(tensors)
            self._write(kept)
        return recipe, kept

    def _cast(self, part: str, tensor: Tensor) -> Tensor:
        return tensor if part == "mask" or not tensor.is_floating_point() else tensor.to(self.dtype)

    def _heads(self, count: int, place: Place) -> list[int]:
        assert self.heads is not None
        wrong = [head for head in self.heads if not 0 <= head < count]
        if wrong:
            raise ValueError(f"heads={list(self.heads)}: {path_of(place)!r} has {count} heads, 0 to {count - 1}.")
        return list(self.heads)

    def _write(self, kept: Kept) -> None:
        from safetensors.torch import save_file

        assert self.spill is not None
        files: dict[str, Path] = {}
        fresh: Tensors = {}
        path = self.spill / f"{self._count:06d}.safetensors"
        self._count += 1
        for part, tensor in kept.tensors.items():
            place = (tensor.data_ptr(), tensor.shape, tensor.stride(), _version(tensor))
            # Layers share it; without a version nobody knows whether it is still the same.
            shared = part == "mask" and not tensor.is_inference()
            if shared and place in self._masks:
                files[part] = self._masks[place][1]
                continue
            if shared:
                self._masks = {place: (tensor, path)}  # the tensor lives on, so that its place stays its own
            fresh[part] = tensor.contiguous().clone()
            files[part] = path
        save_file(fresh, path)
        kept.spill(files)


def weights_of(recipe: Recipe, tensors: Tensors) -> Tensor:
    """All weights of a call, computed in blocks of queries."""
    with torch.no_grad():
        recipe, tensors = recipe.resolve(tensors)
        blocks = _blocks(recipe, tensors)
        if len(blocks) == 1:
            weights = recipe.compute(tensors, blocks[0])
            return weights.clone() if isinstance(recipe, Given) else weights
        first = recipe.compute(tensors, blocks[0])
        whole = first.new_empty(recipe.shape(tensors))
        for rows in blocks:
            whole[:, :, rows] = recipe.compute(tensors, rows)
        return whole


def reduced(recipe: Recipe, tensors: Tensors, reduce: Reduction) -> Attended:
    """Less than all weights, without ever having all of them."""
    keys = recipe.shape(tensors)[3]
    parts = []
    for rows in _blocks(recipe, tensors):
        weights = recipe.compute(tensors, rows)
        if reduce == "mean":
            parts.append((weights.mean(1, keepdim=True),))
        elif reduce == "max":
            parts.append((weights.amax(1, keepdim=True),))
        else:
            assert isinstance(reduce, tuple)
            values, places = weights.topk(min(reduce[1], keys), dim=-1)
            parts.append((values, places.int()))  # type: ignore[arg-type]
    joined = [torch.cat(part, dim=2) for part in zip(*parts, strict=True)]
    if isinstance(reduce, tuple):
        return Attended(Top(keys), {"values": joined[0], "places": joined[1]})
    return Attended(Given(), {"weights": joined[0]})


def storage_of(tensor: Tensor) -> int:
    """What tells whether two tensors share memory; 0 for those without memory of their own, as inside of torch.vmap."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError):
        return 0


def _blocks(recipe: Recipe, tensors: Tensors) -> list[slice]:
    batch, heads, queries, keys = recipe.shape(tensors)
    size = max(BLOCK // max(batch * heads * keys, 1), 1)
    return [slice(start, min(start + size, queries)) for start in range(0, max(queries, 1), size)]


def _version(tensor: Tensor) -> int:
    return -1 if tensor.is_inference() else tensor._version
