"""Figures: numbers that say how they were computed."""

from typing import NamedTuple


class Figure(NamedTuple):
    """A figure, and how exactly it was computed."""

    value: float
    signature: str = ""
    """What makes the figure comparable with others: sacrebleu's signature, or the definition in words."""
