"""Metrics by source length, as in figure 2 of Bahdanau et al. (2015)."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from saccade.evaluation.figures import Figure


class LengthBin(NamedTuple):
    """The metrics of the examples whose sources have `low` to `high` tokens."""

    low: int
    high: int
    examples: int
    figures: dict[str, Figure]


def by_length(
    lengths: Sequence[int], score: Callable[[list[int]], dict[str, Figure]], *, width: int = 10
) -> list[LengthBin]:
    """Metrics for 1 to `width` tokens, the next `width`, and so on, leaving out empty bins.

    Args:
        lengths: the number of tokens of each source.
        score: computes the metrics of the examples with these indices.
        width: the width of a bin, in tokens.
    """
    if width < 1:
        raise ValueError(f"width must be a number of tokens, 1 or more, got {width}.")
    members: dict[int, list[int]] = {}
    for number, length in enumerate(lengths):
        members.setdefault(max(length - 1, 0) // width, []).append(number)
    return [
        LengthBin(place * width + 1, (place + 1) * width, len(numbers), score(numbers))
        for place, numbers in sorted(members.items())
    ]
