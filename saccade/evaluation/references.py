"""Predicted texts and the references they are compared with."""

from __future__ import annotations

from collections.abc import Sequence

Texts = Sequence[str]

References = Sequence[str | Sequence[str]]
"""References: one text for each prediction, or several correct ones."""


def several(wanted: str | Sequence[str]) -> list[str]:
    """The correct texts of one prediction as a list."""
    return [wanted] if isinstance(wanted, str) else list(wanted)


def check_texts(predicted: Texts, wanted: References) -> None:
    """Raises if the two cannot be compared."""
    if isinstance(predicted, str) or isinstance(wanted, str):
        raise TypeError("Pass lists of texts, not a single text.")
    if len(predicted) != len(wanted):
        raise ValueError(f"{len(predicted)} predicted texts cannot be compared with {len(wanted)} references.")
    if not wanted:
        raise ValueError("There are no texts to compare.")
