"""The largest weights of each query, for maps that are too large for memory."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


class TopHead(NamedTuple):
    """One head: (queries, k) each."""

    values: Tensor
    places: Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class TopWeights:
    """The k largest weights of each query. The others are unknown and count as zero.

    Shapes:
        values, places (heads, queries, k).

    Args:
        values: the weights.
        places: their columns.
        keys: how many columns there are.
    """

    values: Tensor
    places: Tensor
    keys: int

    def __post_init__(self) -> None:
        if self.values.ndim != 3 or self.values.shape != self.places.shape:
            raise ValueError(
                "values and places must both be (heads, queries, k), got "
                f"{tuple(self.values.shape)} and {tuple(self.places.shape)}."
            )
        if self.places.numel() and not 0 <= int(self.places.min()) <= int(self.places.max()) < self.keys:
            raise ValueError(
                f"places must be columns from 0 to {self.keys - 1}, got {int(self.places.min())} to "
                f"{int(self.places.max())}."
            )

    @property
    def shape(self) -> tuple[int, int, int]:
        """(heads, queries, keys)."""
        return self.values.shape[0], self.values.shape[1], self.keys

    def __iter__(self) -> Iterator[TopHead]:
        return (TopHead(*head) for head in zip(self.values, self.places, strict=True))

    def chosen(self, queries: list[int], keys: list[int]) -> "TopWeights":
        """Some rows and columns of it."""
        values, places = self.values[:, queries], self.places[:, queries].long()
        if keys == list(range(self.keys)):
            return TopWeights(values=values, places=places, keys=self.keys)
        new = torch.full((self.keys,), -1)
        new[keys] = torch.arange(len(keys))
        places = new[places]
        gone = places < 0
        return TopWeights(values=values.masked_fill(gone, 0.0), places=places.clamp(min=0), keys=len(keys))

    def dense(self) -> Tensor:
        """(heads, queries, keys): zeros where the weight is not known."""
        whole = self.values.new_zeros(self.shape)
        return whole.scatter_add_(-1, self.places.long(), self.values)
