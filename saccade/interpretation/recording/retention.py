"""How much of a call to keep: everything, or less to save memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from saccade.interpretation.recording.blocks import no_autocast, reduced
from saccade.interpretation.recording.files import Folder
from saccade.interpretation.recording.kept import PARAMETERS, Kept
from saccade.interpretation.recording.missing import Missing
from saccade.interpretation.recording.recipes import Captured, Tensors
from saccade.interpretation.recording.steps import is_step, settle
from saccade.kernels.private_torch import version

Reduction = str | tuple[str, int] | None


@dataclass
class Retention:
    """What to keep of each call.

    Args:
        heads: the numbers of the heads; all by default.
        reduce: "mean" or "max" over the heads, or ("top_k", k) for the k largest weights of each query.
        dtype: the dtype of the kept queries and keys, or of weights where these are kept.
        spill: a folder to write the tensors to immediately.

    Attributes:
        everything: whether nothing is left out or computed.
        written: whether any tensor is a parameter, or had been changed in place before it was kept.
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
        self._folder = None if self.spill is None else Folder(self.spill, "spill")
        self.everything = self.heads is None and self.reduce is None and self.dtype is None and self.spill is None
        self._copies: dict[Any, tuple[Tensor, Tensor]] = {}
        self.written = False

    def keep(self, attended: Captured, path: str) -> Kept:
        """What to keep of a call of the module with this path, without its autograd graph."""
        recipe, tensors = attended
        for part, tensor in tensors.items():
            if type(tensor) is not Tensor or tensor.requires_grad:
                tensors[part] = tensor.detach()
        if not self.everything:
            with torch.no_grad(), no_autocast(tensors):
                if self.heads is not None:
                    recipe, tensors = recipe.choose(tensors, self._heads(recipe.shape(tensors)[1], path))
                recipe, tensors = recipe.resolve(tensors)
                if self.reduce is not None:
                    recipe, tensors = reduced(recipe, tensors, self.reduce)
                if self.dtype is not None:
                    tensors = {part: self._cast(part, tensor) for part, tensor in tensors.items()}
        if self._folder is not None:
            shape = recipe.shape(tensors)
            recipe, files = self._folder.write(recipe, tensors)
            kept = Kept(recipe, {})
            kept.spill(files)
            kept.shape = shape
            return kept
        kept = Kept(recipe, tensors)
        self.written = self.written or not PARAMETERS.isdisjoint(tensors)
        if kept.written:
            self.written = True
            if is_step(kept.recipe, kept.tensors):
                settle([kept])
            else:
                self._copy_what_changes(kept)
        return kept

    def end(self, noted: Callable[[], list[tuple[str, Kept]]], missing: Sequence[Missing]) -> None:
        """Frees what is only needed while recording; with `spill`, writes the list of calls to the folder."""
        if self._folder is not None:
            self._folder.finish(noted(), missing)
        self._copies.clear()

    def _copy_what_changes(self, kept: Kept) -> None:
        """Copies tensors that were written to before, such as a cache, since they probably will be again."""
        copied: Tensors = {}
        for part, tensor in kept.tensors.items():
            now = version(tensor)
            if now and part not in PARAMETERS:
                copied[part] = self._copy(part, tensor, now)
        if copied:
            kept.hold({**kept.tensors, **copied})

    def _copy(self, part: str, tensor: Tensor, now: int) -> Tensor:
        if part != "mask" or now < 0:
            return tensor.clone()
        place = (tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride(), now)
        if place not in self._copies:  # layers share masks; the tensor stays alive, so that its address stays its own
            self._copies = {place: (tensor, tensor.clone())}
        return self._copies[place][1]

    def _cast(self, part: str, tensor: Tensor) -> Tensor:
        return tensor if part == "mask" or not tensor.is_floating_point() else tensor.to(self.dtype)

    def _heads(self, count: int, path: str) -> list[int]:
        assert self.heads is not None
        wrong = [head for head in self.heads if not 0 <= head < count]
        if wrong:
            raise ValueError(f"heads={list(self.heads)}: {path!r} has {count} heads, 0 to {count - 1}.")
        return list(self.heads)
