"""Which column probably plays which role, for advice: judged by names and by what the first rows hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

Kind = Literal["text", "label", "number", "file", ""]
"""What the cells of a role are like; "" if that says little."""

UNKNOWN = "COLUMN"
"""Stands for a column that cannot be guessed."""

COUNTERS = ("", "#", "id", "idx", "index", "no", "nr", "number", "row")
"""Names of columns that usually just count rows."""

ORDER: Sequence[Kind] = ("file", "number", "label", "text", "")
"""What is looked for first: the kinds that fewest columns could be."""

SAMPLE = 200
"""How many rows are looked at."""

FEWEST = 5
"""So many rows tell what a column holds."""

LONGER = 2.0
"""The texts of a column are meant if they are so many times as long as those of any other."""

_NUMBER = re.compile(r"\s*[+-]?\d+([.,]\d+)*([eE][+-]?\d+)?\s*").fullmatch
_CODE = re.compile(r"\s*\S*\d\S*\s*").fullmatch  # a number, or the likes of T-17
_FILE = re.compile(r".*\w\.[A-Za-z]\w{1,4}").fullmatch
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+").findall


def likely_columns(
    kinds: Mapping[str, Kind], header: Sequence[str], rows: Sequence[Sequence[Any]] = ()
) -> dict[str, str]:
    """The likely column of each role, or UNKNOWN where several are as likely as each other.

    A column of the role's name is taken first, then one whose name has the role as a word, as `review_text` has `text`;
    then one whose cells fit. Texts are not numbers and do not all come again, labels are short and come again.

    Args:
        kinds: what each role holds.
        header: the names of the columns.
        rows: the first ones, by position; without them, columns are taken in their order.
    """
    found: dict[str, str] = {}
    words = {name: [word.lower() for word in _WORDS(name)] for name in header}
    for spelt in ({name: [name.strip().lower()] for name in header}, words):
        for role in kinds:
            named = [name for name in header if role.lower() in spelt[name] and name not in found.values()]
            if role not in found and len(named) == 1:
                found[role] = named[0]
    columns = {name: [str(row[place]) for row in rows if place < len(row)] for place, name in enumerate(header)}
    judged = all(len(cells) >= FEWEST for cells in columns.values())
    telling = {role: kind if judged else "" for role, kind in kinds.items()}
    for kind in sorted({*telling.values()}, key=ORDER.index):
        roles = [role for role in kinds if telling[role] == kind and role not in found]
        free = [name for name in header if name not in found.values() and name.strip().lower() not in COUNTERS]
        fitting = _fitting(kind, {name: columns[name] for name in free}, len(roles))
        taken = fitting if len(fitting) == len(roles) else [UNKNOWN] * len(roles)
        found |= zip(roles, taken, strict=True)
    return {role: found[role] for role in kinds}


def _fitting(kind: Kind, columns: Mapping[str, Sequence[str]], wanted: int) -> list[str]:
    """The columns whose cells fit a kind; of texts, the longest if there are too many."""
    if kind == "number":
        varied = {name: cells for name, cells in columns.items() if len({*cells}) > 1}
        return [name for name, cells in varied.items() if all(map(_NUMBER, cells)) and not _counts(cells)]
    if kind == "file":
        return [name for name, cells in columns.items() if all(map(_FILE, cells))]
    if kind == "label":
        again = {name: cells for name, cells in columns.items() if 1 < len({*cells}) <= len(cells) / 2}
        words = [name for name, cells in again.items() if not all(map(_NUMBER, cells))]
        return words if len(words) >= wanted else list(again)
    if kind == "text":
        texts = {name: cells for name, cells in columns.items() if 2 * len({*cells}) > len(cells)}
        texts = {name: cells for name, cells in texts.items() if not all(map(_CODE, cells))}
        lengths = {name: sum(map(len, cells)) / len(cells) for name, cells in texts.items()}
        order = sorted(lengths, key=lambda name: -lengths[name])
        if len(order) > wanted and wanted and lengths[order[wanted - 1]] >= LONGER * lengths[order[wanted]]:
            return [name for name in texts if name in order[:wanted]]
        return list(texts)
    return list(columns)


def _counts(cells: Sequence[str]) -> bool:
    """Whether the cells only count the rows."""
    return all(cell.isdecimal() for cell in cells) and all(int(b) - int(a) == 1 for a, b in pairwise(cells))
