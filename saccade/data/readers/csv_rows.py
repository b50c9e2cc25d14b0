"""Rows of CSV, with errors reported where they begin."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from saccade.data.errors import BadRow
from saccade.data.readers import lines as limits
from saccade.data.readers.lines import raw_lines
from saccade.data.readers.parts import FilePart

Row = tuple[int, list[str] | BadRow]
"""The number of a row's first line with its cells, or with what is wrong."""

FIX = 'Put text with commas, quotes or newlines in "...", and double the quotes inside.'


def csv_rows(path: Path, part: FilePart | None = None) -> Iterator[Row]:
    """Cells separated by commas as in RFC 4180: optionally quoted, with doubled quotes and newlines inside.

    After an error, reading resumes on the line after the one that is to blame.
    """
    if csv.field_size_limit() < limits.LONGEST:  # the module's own limit, 128 KiB, is less than a long document
        csv.field_size_limit(limits.LONGEST)
    feed = Feed(path, part)
    reader = csv.reader(feed, strict=True)
    while True:
        feed.begin()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except BadRow as bad:  # a line beyond the limit
            yield bad.line, bad
        except (csv.Error, OverflowError) as error:
            blamed = feed.blame(str(error))
            yield blamed.line, blamed
        else:
            yield feed.record[0][0], cells


class Feed:
    """The lines of a file for Python's CSV reader, which remembers those of the current row."""

    def __init__(self, path: Path, part: FilePart | None = None) -> None:
        self.path = path
        self.lines = raw_lines(path, part)
        self.again: deque[tuple[int, str]] = deque()
        self.record: list[tuple[int, str]] = []
        self.size = 0

    def begin(self) -> None:
        """Starts a row."""
        self.record, self.size = [], 0

    def __iter__(self) -> Feed:
        return self

    def __next__(self) -> str:
        number, line = self.again.popleft() if self.again else next(self.lines)
        if isinstance(line, BadRow):
            raise line
        self.record.append((number, line))
        self.size += len(line)
        if self.size > limits.LONGEST and len(self.record) > 1:
            raise OverflowError(f"a row of more than {limits.LONGEST:,} characters")
        return line

    def blame(self, error: str) -> BadRow:
        """The error, at the line where a quote was opened or else where the row began; later lines are read again.

        Quotes open and close in turn, doubled ones too: if their number is odd, the last one is open.
        """
        is_open = sum(line.count('"') for _, line in self.record) % 2 == 1
        start = self.record[0][0]
        if is_open:
            start = next(number for number, line in reversed(self.record) if '"' in line)
        self.again.extendleft(reversed([(number, line) for number, line in self.record if number > start]))
        problem = "a quote is opened and never closed" if is_open else f"not a CSV row ({error})"
        return BadRow(str(self.path), start, problem, FIX)
