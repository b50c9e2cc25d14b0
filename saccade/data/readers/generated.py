"""The built-in dates, requested like a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from saccade.data.dates import SPLITS, DateExample, generate
from saccade.data.errors import BadRow, DataError
from saccade.data.readers.base import Reader, readers
from saccade.data.readers.columns import Record
from saccade.registry import nearest

DATES = "dates:"


@readers.register("dates")
class Dates(Reader):
    """The examples of `dates:split:count:seed`; count and seed default to 20000 and 0."""

    prefix = DATES

    @classmethod
    def absolute(cls, source: str) -> str:
        return source

    def rows(self) -> Iterator[tuple[int, Record | BadRow]]:
        split, *numbers = self.name.removeprefix(DATES).split(":")
        if split not in SPLITS:
            raise DataError(f"{self.name!r}: there is no split {split!r}.{nearest(split, SPLITS)}")
        if len(numbers) > 2 or not all(n.isascii() and n.isdecimal() and len(n) < 10 for n in numbers):
            raise DataError(
                f"Write dates as 'dates:train:20000' or, with a seed, 'dates:train:20000:7'; got {self.name!r}."
            )
        count, seed = [int(number) for number in numbers] + [20000, 0][len(numbers) :]
        self.names, self.folder = DateExample._fields, Path()
        for line, example in enumerate(generate(count, split=split, seed=seed), start=1):
            yield line, example._asdict()

    def stamp(self) -> str:
        return self.name
