"""Metric values, with a description of how they were computed."""

from typing import NamedTuple


class Figure(NamedTuple):
    """A metric's value, and exactly how it was computed."""

    value: float
    signature: str = ""
    """Makes the value comparable with others: sacrebleu's signature, or the definition in words."""
    interval: tuple[float, float] | None = None
    """The range of the value in 95 % of resamplings of the examples, if requested."""
