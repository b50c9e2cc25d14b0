"""What is kept of a call: everything, or less to save memory."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from saccade.interpretation.recording.naming import Place, path_of
from saccade.interpretation.recording.recipes import Captured, Given, Recipe, Shape, Tensors, Top
from saccade.kernels.modes import exporting
from saccade.kernels.private_torch import version

BLOCK = 1 << 24
"""How many weights are computed at a time."""

OVERWRITTEN = -2
"""A version that no tensor has."""

Reduction = str | tuple[str, int] | None


class Kept:
    """The tensors of one call, in memory or in a file.

    In memory they are references to the model's own tensors. The recording copies them when it sees that they are
    about to be overwritten (`secure`). A change that it did not see shows in their version, and reading them is then an
    error.

    Attributes:
        run: the number of the run of the model that made the call, see `Runs`.
    """

    __slots__ = ("_files", "_versions", "run", "shape", "tensors")

    def __init__(self, tensors: Tensors) -> None:
        self.tensors = tensors
        self.shape: Shape | None = None
        self.run = 0
        self._versions: dict[str, int] = {}
        for part, tensor in tensors.items():
            self._versions[part] = version(tensor)
        self._files: dict[str, Path] = {}

    def __getstate__(self) -> tuple[Any, ...]:
        """For pickles and copies, whose tensors count their versions anew; what was overwritten stays an error."""
        return self.tensors, self.shape, self.run, self._files, self._overwritten()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.tensors, self.shape, self.run, self._files, overwritten = state
        self._versions = {
            part: OVERWRITTEN if part in overwritten else version(each) for part, each in self.tensors.items()
        }

    def _overwritten(self) -> list[str]:
        return [part for part, tensor in self.tensors.items() if version(tensor) != self._versions[part]]

    @property
    def may_change(self) -> bool:
        """Whether it may be overwritten: a tensor that was never changed in place hardly ever will be."""
        return any(self._versions.values())

    def load(self, name: str) -> Tensors:
        """The tensors; `name` is the name of the call in errors."""
        for part in self._overwritten():
            raise RuntimeError(
                f"{part} of {name!r} was changed in place since it was recorded, so its weights can no longer be "
                "computed: read them before parameters or caches change, or record with "
                'reduce="mean" or spill=folder.'
            )
        if not self._files:
            return self.tensors
        from safetensors.torch import load_file

        return {part: load_file(path)[part] for part, path in self._files.items()}

    def secure(self, storage: int, copies: dict[Any, Tensor]) -> None:
        """Copies the tensors in a storage that is about to be overwritten; `copies` holds the copies of other calls."""
        for part, tensor in self.tensors.items():
            if storage_of(tensor) == storage and version(tensor) == self._versions[part]:
                place = (tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
                if place not in copies:
                    copies[place] = tensor.clone()
                self.tensors[part] = copies[place]
                self._versions[part] = version(copies[place])

    def spill(self, files: dict[str, Path]) -> None:
        self._files = files
        self.tensors, self._versions = {}, {}


@dataclass
class Retention:
    """What to keep of each call.

    Args:
        heads: the numbers of the heads; all by default.
        reduce: "mean" or "max" over the heads, or ("top_k", k) for the k largest weights of each query.
        dtype: the dtype of the kept queries and keys, or of weights where these are kept.
        spill: a folder to write the tensors to immediately.
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
            raise ValueError(f"dtype must be a floating-point dtype such as torch.float16, got {self.dtype}.")
        if self.spill is not None:
            self.spill.mkdir(parents=True, exist_ok=True)
            if next(self.spill.glob("*.safetensors"), None) is not None:
                raise ValueError(f"spill={str(self.spill)!r} already holds .safetensors files: give an empty folder.")
        self._masks: dict[Any, tuple[Tensor, Path]] = {}
        self._count = 0

    def keep(self, attended: Captured, place: Place) -> tuple[Recipe, Kept]:
        """What to keep of a call of the module at this place, without its autograd graph."""
        recipe, tensors = attended
        for part, tensor in tensors.items():
            if tensor.requires_grad or type(tensor) is not Tensor:
                tensors[part] = tensor.detach()
        if self.heads is None and self.reduce is None and self.dtype is None and self.spill is None:
            return recipe, Kept(tensors)
        with torch.no_grad(), _no_autocast(tensors):
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
            place = (tensor.data_ptr(), tensor.shape, tensor.stride(), version(tensor))
            # Layers share masks; inference tensors have no version that would tell whether it is still the same.
            shared = part == "mask" and not tensor.is_inference()
            if shared and place in self._masks:
                files[part] = self._masks[place][1]
                continue
            if shared:
                self._masks = {place: (tensor, path)}  # keeps the tensor alive, so that its address stays its own
            fresh[part] = tensor.contiguous().clone()
            files[part] = path
        save_file(fresh, path)
        kept.spill(files)


def weights_of(recipe: Recipe, tensors: Tensors) -> Tensor:
    """All weights of a call, computed in blocks of queries."""
    with torch.no_grad(), _no_autocast(tensors):
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


def reduced(recipe: Recipe, tensors: Tensors, reduce: Reduction) -> Captured:
    """Reduced weights, without ever holding all of them."""
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
        return Captured(Top(keys), {"values": joined[0], "places": joined[1]})
    return Captured(Given(), {"weights": joined[0]})


def storage_of(tensor: Tensor) -> int:
    """The address of a tensor's memory; 0 if it has none of its own, as inside torch.vmap."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):
        return 0


def _no_autocast(tensors: Tensors) -> AbstractContextManager[object]:
    """Weights are computed in single precision also inside autocast. Lazy ones have no tensors: the model computes."""
    device = next((tensor.device.type for tensor in tensors.values()), None)
    return nullcontext() if device is None else torch.autocast(device, enabled=False)


def _blocks(recipe: Recipe, tensors: Tensors) -> list[slice]:
    batch, heads, queries, keys = recipe.shape(tensors)
    if exporting():  # an exported program cannot depend on the sizes
        return [slice(0, queries)]
    size = max(BLOCK // max(batch * heads * keys, 1), 1)
    return [slice(start, min(start + size, queries)) for start in range(0, max(queries, 1), size)]
