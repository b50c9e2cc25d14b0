"""Memory: what attention reads."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from saccade import masks
from saccade.kernels import tape as tapes
from saccade.kernels.grow import grow
from saccade.kernels.nested import map_tensors, tensors_in, with_tensors
from saccade.kernels.tape import Tape
from saccade.masks import Mask


class MemoryOwner(Protocol):
    """Anything that can write and read a memory: `Attention` and `MultiHead`."""

    token: str
    """Distinguishes it from all others except its own copies: see `new_token`."""

    def prepare(
        self, keys: Tensor, values: Tensor | None = None, *, mask: Tensor | Mask | None = None, start: int = 0
    ) -> Memory: ...


@dataclass(frozen=True, eq=False)
class Memory:
    """Keys and values, written once and read by any number of queries.

    Args:
        prepared: the keys as prepared by the score and the selection.
        values: (*batch, keys, value_dim).
        mask: which keys may be attended, if not all.
        owner: the attention that wrote it; it and its copies may read it.
        own_values: whether the values were given, rather than being the keys.
        tape: where the prepared keys and the values are written, with room for more, if it was reserved.
    """

    prepared: Any
    values: Tensor
    mask: Mask | None
    owner: MemoryOwner
    own_values: bool = False
    tape: Tape | None = None

    @property
    def num_keys(self) -> int:
        """The number of keys: like `len(memory)`, but may be symbolic in an exported program."""
        return self.values.shape[-2]

    def __len__(self) -> int:
        return self.num_keys

    def reserve(self, keys: int) -> Memory:
        """The same memory with room for `keys` keys in total: `append` then writes without copying the earlier ones.

        For memories that grow key by key, such as the tapes of an LSTMN. If more keys are appended, the room is
        doubled.
        """
        return replace(self, tape=tapes.reserve([*tensors_in(self.prepared), self.values], keys))

    def append(
        self,
        keys: Tensor,
        values: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        rows: Tensor | None = None,
    ) -> Memory:
        """Returns a memory with more keys at the end, leaving this one unchanged.

        Args:
            keys, values: the new ones, (*batch, new, dim), prepared with the parameters of the owner.
            mask: bool (*batch, 1, new), True = may be attended; all of them by default.
            rows: which row of the first batch dimension each of the new ones continues: as `index(rows)` before, but
                with one copy instead of two.
        """
        if rows is not None and self.mask is not None:
            return self.index(rows).append(keys, values, mask=mask)
        if self.own_values != (values is not None):
            raise ValueError(
                "pass values with appended keys if and only if they were passed when the memory was written: here they "
                f"{'were' if self.own_values else 'were not'}."
            )
        old, new = self.num_keys, keys.shape[-2]
        added = self.owner.prepare(keys, values, mask=mask, start=old)
        have, got = self.values.shape, added.values.shape
        if rows is not None:
            have = torch.Size([len(rows), *have[1:]])
        if have[:-2] != got[:-2] or have[-1] != got[-1]:
            raise ValueError(
                f"appended keys {tuple(keys.shape)} do not fit the memory: its values are {tuple(have)}, the new ones "
                f"{tuple(got)}; only the number of keys may differ."
            )
        grown = None if self.mask is None else self.mask.grow(old, new)
        if added.mask is not None:
            late = added.mask.tensor(1, new)
            if late.shape[-2] != 1:
                raise ValueError(f"the mask of appended keys must be (*batch, 1, {new}), got {tuple(late.shape)}.")
            late = torch.cat([late.new_ones(*late.shape[:-1], old), late.expand(*late.shape[:-1], new)], dim=-1)
            grown = masks.as_mask(late) if grown is None else grown & late
        if rows is None and self.tape is not None:
            longer = tapes.extend(self.tape, [*tensors_in(added.prepared), added.values])
            if longer is not None:
                tape, (*tensors, values) = longer
                return replace(
                    self, prepared=with_tensors(self.prepared, tensors), values=values, mask=grown, tape=tape
                )
        prepared = map_tensors(lambda a, b: grow(a, b, rows), self.prepared, added.prepared)
        values = grow(self.values, added.values, rows)
        return replace(self, prepared=prepared, values=values, mask=grown, tape=None)

    def index(self, rows: Tensor) -> Memory:
        """Selects rows of the first batch dimension, for beam search."""
        prepared = map_tensors(lambda tensor: tensor.index_select(0, rows), self.prepared)
        mask = None if self.mask is None else self.mask.index(rows, self.values.dim())
        return replace(self, prepared=prepared, values=self.values.index_select(0, rows), mask=mask, tape=None)


def new_token() -> str:
    """A token that no other attention has; copies made by `copy` and `pickle` keep it."""
    return uuid.uuid4().hex  # draws no random numbers that a seed decides


def check_memory(memory: Memory, owner: MemoryOwner) -> None:
    """Rejects anything that is not a memory, and memories written by another attention, even one of the same shape.

    Not in compiled code, which would be compiled again for every token.
    """
    if not isinstance(memory, Memory):
        raise TypeError(f"memory must be a Memory, got {type(memory).__name__}: attention.prepare(keys) writes one.")
    if memory.owner is owner or torch.compiler.is_compiling():
        return
    if memory.owner.token != owner.token:
        raise ValueError(
            "memory was written by another attention, whose parameters differ: write it with this one's `prepare`."
        )
    if _anatomy(memory.owner) != _anatomy(owner):
        raise ValueError(
            "memory was written by a copy of this attention whose parts were replaced: write it with this one's "
            "`prepare`."
        )


def _anatomy(owner: MemoryOwner) -> list[object]:
    if not isinstance(owner, nn.Module):
        return [type(owner)]
    return [*map(type, owner.modules()), *(parameter.shape for parameter in owner.parameters())]
