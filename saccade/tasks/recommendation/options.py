"""The options of recommendations."""

from __future__ import annotations

from dataclasses import dataclass

from saccade.tasks.options import Options


@dataclass(frozen=True, kw_only=True)
class RecommendationOptions(Options):
    """What to recommend to a user if no item is given.

    Args:
        top: how many items to list, the one with the highest predicted rating first.
        seen: whether items that the user has reviewed may also be recommended.
    """

    top: int = 10
    seen: bool = False

    def check(self) -> None:
        if not 1 <= self.top <= 1_000_000:
            raise ValueError(f"top must be from 1 to 1000000, got {self.top}.")
