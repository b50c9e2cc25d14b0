"""The vocabulary of codes, and the scales of codes with numbers."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from saccade.artifacts import JsonObject
from saccade.fields.visit_cells import Codes

LARGEST = sys.float_info.max
FURTHEST = 1e6
"""Standard deviations from the mean: a number further away, which can only be a mistake, would overflow in a model."""


class Feature(NamedTuple):
    """One number that a model reads."""

    place: int
    """That of its code in a visit."""
    id: int
    amount: float


class Scale(NamedTuple):
    """The mean and standard deviation by which a code's numbers are scaled."""

    mean: float
    deviation: float


class Codebook:
    """Ids from 1 for the codes of the training data; codes with numbers have a second id for the number.

    A code gives the feature (id, 1), and its number x the feature (second id, (x - mean) / deviation). 0 is padding.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.scales: dict[str, Scale] = {}
        self._ids: dict[str, int] = {}
        self._of_numbers: dict[str, int] = {}

    @property
    def size(self) -> int:
        """How many ids there are, including padding."""
        return 1 + len(self.names) + len(self.scales)

    def learn(self, values: Iterable[Iterable[Codes]], *, min_count: int) -> None:
        """Learns from the codes of all training examples.

        Args:
            values: for each example, what was recorded each time.
            min_count: how many examples must have a code.
        """
        counts: Counter[str] = Counter()
        sums: dict[str, list[float]] = {}
        for example in values:
            seen: set[str] = set()
            for codes in example:
                seen.update(codes["codes"])
                for name, number in zip(codes["codes"], codes["numbers"], strict=True):
                    if number is not None:  # Welford's algorithm: one pass, no cancellation
                        of = sums.setdefault(name, [0.0, 0.0, 0.0])
                        of[0] += 1
                        step = number - of[1]
                        of[1] += step / of[0]
                        of[2] += step * (number - of[1])
            counts.update(seen)
        self.names = sorted(name for name, count in counts.items() if count >= min_count)
        scales = {name: Scale(mean, math.sqrt(squares / count)) for name, (count, mean, squares) in sums.items()}
        self.scales = {name: scales[name] for name in self.names if name in scales and scales[name].deviation > 0.0}
        self._number()

    def _number(self) -> None:
        self._ids = {name: number for number, name in enumerate(self.names, start=1)}
        self._of_numbers = {name: number for number, name in enumerate(self.scales, start=1 + len(self.names))}

    def __contains__(self, name: str) -> bool:
        return name in self._ids

    def features(self, codes: Codes) -> Iterator[Feature]:
        """The features of codes; unknown codes have none."""
        for place, (name, number) in enumerate(zip(codes["codes"], codes["numbers"], strict=True)):
            known = self._ids.get(name)
            if known is None:
                continue
            yield Feature(place, known, 1.0)
            scaled = self._of_numbers.get(name)
            if number is not None and scaled is not None:
                scale = self.scales[name]
                amount = (number - scale.mean) / scale.deviation
                yield Feature(place, scaled, min(max(amount, -FURTHEST), FURTHEST))

    def unknown(self, codes: Codes) -> list[str]:
        """The codes that do not occur in the training data."""
        return [name for name in codes["codes"] if name not in self]

    def as_json(self) -> dict[str, Any]:
        """What `load` reads."""
        return {"names": self.names, "scales": {name: list(scale) for name, scale in self.scales.items()}}

    def load(self, found: JsonObject) -> None:
        """Reads and checks what `as_json` wrote."""
        names: Sequence[str] = found.take_list("names", str)
        if len(set(names)) != len(names):
            raise found.wrong("names", "has the same name twice")
        inner = found.inner("scales")
        known, scales = set(names), {}
        for name in inner.values:
            if name not in known:
                raise inner.wrong(name, "is not among the names")
            mean, deviation = inner.take_list(name, float, length=2, least=-LARGEST, most=LARGEST)
            if not deviation > 0.0:
                raise inner.wrong(name, "has a deviation that is not above 0")
            scales[name] = Scale(float(mean), float(deviation))
        self.names, self.scales = list(names), {name: scales[name] for name in names if name in scales}
        self._number()
