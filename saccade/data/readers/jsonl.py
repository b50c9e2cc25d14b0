"""JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from saccade.data.errors import BadRow
from saccade.data.readers.columns import Columns, as_columns, lookup
from saccade.data.readers.lines import read_lines


def read_jsonl(
    path: Path, columns: Columns | Sequence[str], *, bad: Callable[[BadRow], None]
) -> Iterator[tuple[int, dict[str, str]]]:
    """One object a line."""
    file, columns = str(path), as_columns(columns, numbered=False)
    for line, text in enumerate(read_lines(path), start=1):
        try:
            try:
                record = json.loads(text)
            except json.JSONDecodeError as error:
                problem = f"not JSON ({error.msg} at column {error.colno})"
                raise BadRow(file, line, problem, 'Write one object a line, such as {"source": "...", ...}.') from None
            if not isinstance(record, dict):
                fix = 'Write an object, such as {"source": "...", ...}.'
                raise BadRow(file, line, f"a JSON {type(record).__name__} instead of an object", fix)
            example = lookup(record, columns, file, line)
        except BadRow as row:
            bad(row)
        else:
            yield line, example
