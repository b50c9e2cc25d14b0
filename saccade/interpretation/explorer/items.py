"""What the explorer shows: maps of weights and measures for one input to one model."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.interpretation.explorer.axes import Axis
from saccade.interpretation.explorer.top import TopWeights
from saccade.interpretation.explorer.visits import Contributions, VisitAxis


@dataclass(frozen=True, kw_only=True)
class Map:
    """The attention of one layer.

    Args:
        name: such as `encoder.layer.3.attention`.
        weights: (heads, queries, keys), none negative; `TopWeights` for a map that is too large for memory.
        queries: the rows, which attend: the output, or the label of a text.
        keys: the columns, which are attended to: the input.
        layer: its number, if it has one.
        sides: what to call queries and keys: output and input, unless a sequence attends to itself.
        picked: for a map with one row, the columns that the model picked, if it read only those; None if it attends to
            all columns.
        contributions: for a map over visits, what each code adds to the answer of each row, if the model has
            contributions.
    """

    name: str
    weights: Tensor | TopWeights
    queries: Axis
    keys: Axis
    layer: int | None = None
    sides: tuple[str, str] | None = None
    picked: Sequence[int] | None = None
    contributions: Sequence[Contributions] | None = None

    def __post_init__(self) -> None:
        if len(self.weights.shape) != 3 or tuple(self.weights.shape[1:]) != (len(self.queries), len(self.keys)):
            raise ValueError(
                f"weights of {self.name!r} must be (heads, queries, keys) = (heads, {len(self.queries)}, "
                f"{len(self.keys)}), got {tuple(self.weights.shape)}."
            )
        if self.picked is not None:
            wrong = [place for place in self.picked if not 0 <= place < len(self.keys)]
            if len(self.queries) != 1 or wrong:
                raise ValueError(
                    f"picked of {self.name!r} names columns of a map with one row, from 0 to {len(self.keys) - 1}, got "
                    f"{wrong or self.picked!r:.60} of {len(self.queries)} rows."
                )
        if self.contributions is not None:
            if not isinstance(self.keys, VisitAxis) or len(self.contributions) != len(self.queries):
                raise ValueError(f"contributions of {self.name!r} need visits as columns, and one for each row.")
            for each in self.contributions:
                each.check(self.keys)
        if self.weights.shape[0] == 0:
            raise ValueError(f"weights of {self.name!r} have no heads.")
        stored = self.weights.values if isinstance(self.weights, TopWeights) else self.weights
        for number, head in enumerate(stored):  # head by head: a whole layer may be large
            if not (torch.isfinite(head) & (head >= 0)).all():
                raise ValueError(
                    f"weights of {self.name!r}, head {number}, must be finite and not negative; a row that may attend "
                    "to nothing is a row of zeros."
                )

    def dense(self) -> Tensor:
        """(heads, queries, keys); zeros where `TopWeights` does not know the weight."""
        return self.weights.dense() if isinstance(self.weights, TopWeights) else self.weights


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A figure about an item.

    Args:
        name: such as `AER`.
        value: a number, or the text to show instead.
        meaning: two sentences that explain it.
    """

    name: str
    value: float | str
    meaning: str

    def __post_init__(self) -> None:
        if not isinstance(self.value, str) and not math.isfinite(self.value):  # JSON has no such number
            raise ValueError(f"The value of {self.name!r} must be finite, got {self.value}: give a text instead.")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A label that the model gave, or could have given.

    Args:
        label: its name.
        probability: according to the model, between 0 and 1; None if unknown.
        gold: whether this is the true label.
    """

    label: str
    probability: float | None = None
    gold: bool = False

    def __post_init__(self) -> None:
        if self.probability is not None and not 0 <= self.probability <= 1:
            raise ValueError(f"The probability of {self.label!r} must be between 0 and 1, got {self.probability}.")


@dataclass(frozen=True, kw_only=True)
class Item:
    """One input to one model.

    Args:
        title: its name, shown when items are compared.
        maps: one per layer.
        measures: shown in a table.
        links: a known or extracted alignment: (key, query) pairs as in `i-j`, counted in words on axes that have words
            and in pieces on those that have none. Drawn over maps whose queries differ from their keys.
        outcomes: for classification, the labels with their probabilities, the predicted one first.
        notes: what a reader should know, such as what is not shown.
    """

    title: str
    maps: Sequence[Map]
    measures: Sequence[Measure] = ()
    links: Sequence[tuple[int, int]] | None = None
    outcomes: Sequence[Outcome] = ()
    notes: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not self.maps:
            raise ValueError(f"The item {self.title!r} has no maps to show.")
