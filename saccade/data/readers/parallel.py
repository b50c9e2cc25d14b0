"""Plain text files whose lines belong together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from saccade.data.errors import BadRow, DataError
from saccade.data.readers.columns import Columns, as_columns, checked, places
from saccade.data.readers.lines import read_lines, suffix


def read_parallel(
    paths: Sequence[Path], columns: Columns | Sequence[str], *, bad: Callable[[BadRow], None]
) -> Iterator[tuple[int, dict[str, str]]]:
    """The n-th lines of all files make the n-th example.

    The files are columns: numbered in the order given, and named by their suffixes (`train.de.gz` is "de").
    """
    together = ",".join(map(str, paths))
    if len(paths) == 1 and len(columns) > 1:
        raise DataError(
            f"{together} is one text file, but {' and '.join(columns)} need one each: give {len(columns)} with "
            "commas between, as train.src,train.tgt; a table ends in .tsv, .csv, .jsonl or .parquet."
        )
    numbers = places(as_columns(columns, numbered=True), [suffix(path)[1:] for path in paths], together)
    for line, texts in enumerate(zip_longest(*map(read_lines, paths)), start=1):
        if None in texts:
            raise different_lengths(paths)
        try:
            example = {role: checked(texts[number], role, str(paths[number]), line) for role, number in numbers.items()}
        except BadRow as row:
            bad(row)
        else:
            yield line, example


def different_lengths(paths: Sequence[Path]) -> DataError:
    """The error that says how many lines each file has."""
    counts = [f"{path} has {sum(1 for _ in read_lines(path))} lines" for path in paths]
    return DataError(f"Parallel files must have equally many lines: {', '.join(counts)}.")
