"""The built-in dates, asked for like a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from saccade.data.dates import SPLITS, generate
from saccade.data.errors import BadRow, DataError
from saccade.data.readers.columns import Columns, as_columns, lookup
from saccade.registry import nearest

DATES = "dates:"


def read_dates(
    name: str, columns: Columns | Sequence[str], *, bad: Callable[[BadRow], None]
) -> Iterator[tuple[int, dict[str, str]]]:
    """The examples of `dates:split:count:seed`; the last two may be left out (20000 and 0)."""
    split, *numbers = name.removeprefix(DATES).split(":")
    if split not in SPLITS:
        raise DataError(f"{name!r} asks for a split that is not there.{nearest(split, SPLITS)}")
    if len(numbers) > 2 or not all(number.isdecimal() for number in numbers):
        raise DataError(
            f"Dates are asked for as 'dates:train:20000' or, with a seed, 'dates:train:20000:7'; got {name!r}."
        )
    count, seed = [int(number) for number in numbers] + [20000, 0][len(numbers) :]
    columns = as_columns(columns, numbered=False)
    for line, example in enumerate(generate(count, split=split, seed=seed), start=1):
        yield line, lookup(example._asdict(), columns, name, line)
