"""What the explorer shows: maps of weights and measures, of one input through one model."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.interpretation.explorer.axes import Axis


@dataclass(frozen=True, kw_only=True)
class Map:
    """The attention of one layer.

    Args:
        name: such as `encoder.layer.3.attention`.
        weights: (heads, queries, keys), none below 0.
        queries: what the rows are: what looks.
        keys: what the columns are: what is looked at.
        layer: its number, if it has one.
    """

    name: str
    weights: Tensor
    queries: Axis
    keys: Axis
    layer: int | None = None

    def __post_init__(self) -> None:
        if self.weights.ndim != 3 or tuple(self.weights.shape[1:]) != (len(self.queries), len(self.keys)):
            raise ValueError(
                f"weights of {self.name!r} must be (heads, queries, keys) = (heads, {len(self.queries)}, "
                f"{len(self.keys)}), got {tuple(self.weights.shape)}."
            )
        if self.weights.shape[0] == 0:
            raise ValueError(f"weights of {self.name!r} have no heads.")
        for number, head in enumerate(self.weights):  # head by head: a whole layer may be large
            if not (torch.isfinite(head) & (head >= 0)).all():
                raise ValueError(
                    f"weights of {self.name!r}, head {number}, must be finite and not below 0; a row without any "
                    "attendable key is a row of zeros."
                )


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A figure about an item.

    Args:
        name: such as `AER`.
        value: a number, or what should be written in its place.
        meaning: the two sentences that explain it.
    """

    name: str
    value: float | str
    meaning: str

    def __post_init__(self) -> None:
        if not isinstance(self.value, str) and not math.isfinite(self.value):  # which JSON cannot say
            raise ValueError(f"The value of {self.name!r} must be finite, got {self.value}: write a text in its place.")


@dataclass(frozen=True, kw_only=True)
class Item:
    """One input through one model.

    Args:
        title: what it is called where it stands beside another.
        maps: one a layer.
        measures: shown in a table.
        links: a known or extracted alignment, (key, query) pairs as in `i-j`, counted in words where an axis has words
            and in pieces where it has none. Drawn over the maps whose queries are not their keys.
    """

    title: str
    maps: Sequence[Map]
    measures: Sequence[Measure] = ()
    links: Sequence[tuple[int, int]] | None = None

    def __post_init__(self) -> None:
        if not self.maps:
            raise ValueError(f"The item {self.title!r} has no maps to show.")
