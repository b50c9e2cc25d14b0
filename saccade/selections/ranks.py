"""Ranks among attendable keys."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Ranks(NamedTuple):
    """The position of each key among the attendable keys of its row, so that masking equals removal.

    Args:
        mask: bool (*batch, queries, keys).
        rank: (*batch, queries, keys), the number of attendable keys before this one.
        size: (*batch, queries, 1), the number of attendable keys.
    """

    mask: Tensor
    rank: Tensor
    size: Tensor

    @classmethod
    def of(cls, mask: Tensor) -> Ranks:
        return cls(mask, mask.cumsum(-1) - mask.long(), mask.sum(-1, keepdim=True))

    def rows(self) -> list[Ranks]:
        """One `Ranks` per query."""
        return [Ranks(*row) for row in zip(*(tensor.unbind(-2) for tensor in self), strict=True)]

    def pack(self, tensor: Tensor, fill: float = 0) -> Tensor:
        """Moves the entries of attendable keys to the front, followed by `fill`."""
        keys = tensor.shape[-1]
        places = torch.where(self.mask, self.rank, keys)  # masked entries go to one extra column, which is cut off
        return tensor.new_full((*tensor.shape[:-1], keys + 1), fill).scatter(-1, places, tensor)[..., :keys]

    def unpack(self, packed: Tensor) -> Tensor:
        """The inverse of `pack`, with zeros on masked keys."""
        return packed.gather(-1, self.rank.clamp(max=packed.shape[-1] - 1)).masked_fill(~self.mask, 0)
