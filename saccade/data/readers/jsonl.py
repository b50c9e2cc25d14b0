"""JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from saccade.artifacts import nesting
from saccade.data.errors import BadRow
from saccade.data.readers.base import Reader, readers
from saccade.data.readers.columns import Columns, Record, parts
from saccade.data.readers.lines import numbered_lines

DEEPEST = 64
"""How deep lists and objects may nest; Python's parser gives up at about a thousand."""


@readers.register("jsonl")
class JsonLines(Reader):
    """One JSON object a line; values of any type."""

    suffixes: ClassVar = (".jsonl", ".ndjson")
    divisible: ClassVar = True

    def rows(self) -> Iterator[tuple[int, Record | BadRow]]:
        for line, text in numbered_lines(Path(self.source), self.part):
            yield line, text if isinstance(text, BadRow) else parse(text, self.name, line, self.columns)


def parse(text: str, file: str, line: int, columns: Columns) -> dict[str, Any] | BadRow:
    """The object in a line."""
    if not text.strip():
        return BadRow(file, line, "the line is empty", "--data.bad_rows skip leaves such lines out.")
    if depth(text) > DEEPEST:
        return BadRow(file, line, f"lists and objects nest deeper than {DEEPEST} levels", "Flatten the values.")
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        return BadRow(file, line, f"not JSON ({error.msg.removesuffix(' at')} at column {error.colno})", _fix(columns))
    except ValueError:  # the only other one: Python refuses to read integers of thousands of digits
        return BadRow(file, line, "an integer has thousands of digits", "Write it as a string.")
    if not isinstance(record, dict):
        return BadRow(file, line, f"a JSON {type(record).__name__} instead of an object", _fix(columns))
    return record


def _fix(columns: Columns) -> str:
    """What a line looks like, with the columns that are read."""
    names = [name for role in columns.required for name in parts((columns.given or {}).get(role, role))]
    return f"Write one object a line, such as {json.dumps(dict.fromkeys(map(str, names), '...'), ensure_ascii=False)}."


def depth(text: str) -> int:
    """How deep brackets nest outside strings; exact only where it could matter."""
    brackets = text.count("[") + text.count("{")
    return 0 if brackets <= DEEPEST else nesting(text.encode("utf-8", "surrogatepass"))
