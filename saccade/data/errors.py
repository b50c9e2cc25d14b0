"""What can be wrong with a user's data, told so that it can be put right."""

from __future__ import annotations

from dataclasses import dataclass, field


class DataError(ValueError):
    """The data cannot be used as it was asked for: a column, a file or a whole format is wrong."""


class BadRow(DataError):  # noqa: N818 (a row is what it tells of)
    """One row that cannot be used.

    Args:
        file: where it stands.
        line: its line (in Parquet files and datasets: its row), counted from 1.
        problem: what is wrong with it.
        fix: what to do about it.
    """

    def __init__(self, file: str, line: int, problem: str, fix: str) -> None:
        super().__init__(f"{file}, line {line}: {problem}. {fix}")
        self.file, self.line, self.problem, self.fix = file, line, problem, fix


@dataclass
class Skipped:
    """The bad rows that were left out: all are counted, the first ones listed."""

    keep: int = 20
    count: int = 0
    first: list[BadRow] = field(default_factory=list)

    def add(self, row: BadRow) -> None:
        self.count += 1
        if len(self.first) < self.keep:
            self.first.append(row)

    def report(self) -> str:
        """A line for each listed row, under a line with the count; empty if nothing was skipped."""
        if not self.count:
            return ""
        lines = [f"Skipped {self.count} bad row{'s' if self.count > 1 else ''}:"]
        lines += [f"  {row.file}, line {row.line}: {row.problem}" for row in self.first]
        if self.count > len(self.first):
            lines.append(f"  ... and {self.count - len(self.first)} more")
        return "\n".join(lines)
