"""Where a raw value was found."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from saccade.data.errors import BadRow


class Cell(NamedTuple):
    """The place of a raw value in the user's data.

    Args:
        file: the file, or what stands for it in memory.
        line: line or row, counted from 1.
        role: the name by which the task knows the column: "source", "label", ...
        folder: that relative paths are relative to.
    """

    file: str
    line: int
    role: str
    folder: Path = Path()

    def bad(self, problem: str, fix: str) -> BadRow:
        """The error for a value that cannot be used."""
        return BadRow(self.file, self.line, problem, fix)


def text_of(raw: Any, cell: Cell, *, may_be_empty: bool = False) -> str:
    """A raw value as text."""
    from saccade.data.readers.columns import checked

    if isinstance(raw, int) and not isinstance(raw, bool):
        return str(raw)
    if not isinstance(raw, str):
        raise cell.bad(f"the {cell.role} is not text but {type(raw).__name__}", "Store it as a string.")
    return raw if may_be_empty and not raw.strip() else checked(raw, cell.role, cell.file, cell.line)
