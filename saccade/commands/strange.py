"""What a user should know about the inputs of a prediction."""

from __future__ import annotations

NAMED = 5
"""How many empty inputs are named; the others are counted."""


class Strange:
    """Inputs that are empty, or have parts that the training data did not have.

    Args:
        what: what an input is called.
    """

    def __init__(self, what: str = "input") -> None:
        self.what = what
        self.inputs = 0
        self.parts: dict[str, None] = {}
        self.empty = 0
        self.first_empty: list[int] = []

    def add_empty(self, numbers: list[int]) -> None:
        """Inputs with nothing in them, counted from 1."""
        self.empty += len(numbers)
        self.first_empty = [*self.first_empty, *numbers][:NAMED]

    def add(self, found: dict[int, list[str]]) -> None:
        self.inputs += len(found)
        for parts in found.values():
            self.parts |= dict.fromkeys(parts[:20])

    def remarks(self) -> list[str]:
        found = []
        if self.empty:
            which = ", ".join(map(str, self.first_empty)) + (", ..." if self.empty > len(self.first_empty) else "")
            one = self.empty == 1
            many = f"{self.empty:,} inputs are empty, so their answers are empty too: {which}"
            found = [f"Input {which} is empty, so its answer is empty too." if one else many]
        if not self.inputs:
            return found
        from saccade.tasks.noticing import never_seen  # which imports torch

        have = f"1 {self.what} has" if self.inputs == 1 else f"{self.inputs:,} {self.what}s have"
        return [*found, f"{have} {never_seen(self.parts)}"]
