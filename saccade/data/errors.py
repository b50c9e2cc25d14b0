"""Errors about a user's data: each names the place, the problem and the fix."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path

LEAVE_OUT = "Correct it, or leave such rows out with --data.bad_rows skip."
"""The fix for a value that no file may contain."""


class DataError(ValueError):
    """The data cannot be used: a column, a file or a whole format is wrong. The message is one line."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.splitlines()))


class BadRow(DataError):  # noqa: N818 (named after the row it describes)
    """A row that cannot be used.

    Args:
        file: the file it is in.
        line: its line (its row in Parquet files, datasets and memory), counted from 1; 0 if the file is the row.
        problem: what is wrong with it.
        fix: what to do about it.
    """

    def __init__(self, file: str, line: int, problem: str, fix: str) -> None:
        self.file, self.line, self.problem, self.fix = file, line, one_line(problem), fix
        super().__init__(f"{self.place}: {self.problem}. {fix}")

    @property
    def place(self) -> str:
        """Where it is."""
        return f"{self.file}, line {self.line}" if self.line else self.file

    def with_advice(self, *, header: bool = False) -> BadRow:
        """The same, with the option that leaves such rows out, if the fix does not name it yet.

        Args:
            header: whether the row may be a header that nobody declared.
        """
        advice = [] if "bad_rows skip" in self.fix else ["--data.bad_rows skip leaves such rows out."]
        if header:
            advice.append("If line 1 is a header, set --data.header yes.")
        parts = [self.fix, *advice] if self.fix.endswith(".") else [*advice, self.fix]  # a command stays the end
        return BadRow(self.file, self.line, self.problem, " ".join(parts))

    def __reduce__(self) -> tuple[type[BadRow], tuple[str, int, str, str]]:
        return BadRow, (self.file, self.line, self.problem, self.fix)


@dataclass
class Skipped:
    """The bad rows that were skipped: all of them are counted, and the first ones kept."""

    keep: int = 20
    count: int = 0
    first: list[BadRow] = field(default_factory=list)

    def add(self, row: BadRow) -> None:
        """Counts a row, and keeps it if it is one of the first."""
        self.count += 1
        if len(self.first) < self.keep:
            self.first.append(row)

    def report(self) -> str:
        """The count, then one line for each of the first rows; empty if nothing was skipped."""
        if not self.count:
            return ""
        lines = [f"Skipped {self.count} bad row{'s' if self.count > 1 else ''}:"]
        lines += [f"  {row.place}: {row.problem}" for row in self.first]
        if self.count > len(self.first):
            lines.append(f"  ... and {self.count - len(self.first)} more")
        return "\n".join(lines)


def conversion(file: str, encoding: str) -> str:
    """The command that converts a file to UTF-8."""
    if not os.path.isfile(file):
        return f"iconv -f {encoding} -t UTF-8 in > out"
    path, given = Path(file), shlex.quote(file)
    plain = path.with_suffix("") if path.suffix == ".gz" else path
    result = shlex.quote(f"{plain.stem}.utf8{plain.suffix}")
    if path.suffix == ".gz":
        return f"gzip -dc {given} | iconv -f {encoding} -t UTF-8 > {result}"
    return f"iconv -f {encoding} -t UTF-8 {given} > {result}"


def one_line(text: object) -> str:
    """The text on one line, so that an error of another library cannot break ours into several."""
    return " ".join(str(text).split())
