"""Inputs that give away the answer: codes named like the outcome to be predicted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from saccade.fields import Field, Label, VisitLabel, VisitLabels, Visits
from saccade.tasks.data import Example

PLAIN = {"", "yes", "no", "true", "false", "none", "other", "positive", "negative"}
"""Outcome names that carry no meaning."""
ALWAYS = 0.95
"""Above this share of visits with an outcome that also contain its code, it is not a coincidence."""
FEWEST = 5
"""The minimum number of visits with an outcome for a share to mean anything."""


def leaks_by_name(label: Label, inputs: Mapping[str, Field], columns: Mapping[str, Any]) -> list[str]:
    """Warnings about codes that are named like an outcome of the whole record, or like its column."""
    if isinstance(label, VisitLabel | VisitLabels):  # what was recorded before may well predict it
        return []
    column = columns.get("label", "label")
    own = [str(name) for name in ([column] if isinstance(column, str | int) else column)]
    outcomes = [*own, *(name for name in label.names if _plain(name) not in PLAIN)]
    wanted = {_plain(name): name for name in outcomes if _plain(name) and not _plain(name).isdecimal()}
    found = []
    for role, field in inputs.items():
        if isinstance(field, Visits):
            for code in (*field.book.names, *field.static.names):
                whole, name = _plain(code), _plain(code.partition("=")[0])
                outcome = wanted.get(whole) or wanted.get(name)
                if outcome is not None:
                    found.append((role, code, outcome))
    return [_warning(role, code, f"is named like the outcome {outcome!r:.60}") for role, code, outcome in found[:5]]


def leaks_in_visits(label: Label, inputs: Mapping[str, Field], examples: Iterable[Example]) -> list[str]:
    """Warnings about outcomes of visits whose codes are nearly always in the same visit."""
    role, field = next(iter(inputs.items()))
    if not isinstance(label, VisitLabel | VisitLabels) or not isinstance(field, Visits):
        return []
    shared = {_plain(name) for name in label.names} & {_plain(code) for code in field.book.names}
    if not shared - PLAIN:
        return []
    visits: Counter[str] = Counter()
    both: Counter[str] = Counter()
    for example in examples:
        for codes, outcome in zip(field.codes(example[role]), example["label"], strict=True):
            here = {_plain(code) for code in codes}
            for name in _names(outcome):
                visits[name] += 1
                both[name] += _plain(name) in here
    certain = [name for name, count in visits.items() if count >= FEWEST and both[name] >= ALWAYS * count]
    certain.sort(key=lambda name: -visits[name])
    return [
        _warning(role, name, f"is in {both[name]:,} of the {visits[name]:,} visits whose outcome it is")
        for name in certain[:5]
    ]


def _names(outcome: Any) -> Sequence[str]:
    if outcome is None:
        return ()
    return [outcome] if isinstance(outcome, str) else outcome


def _plain(name: str) -> str:
    """The letters and digits of a name."""
    return re.sub(r"[\W_]+", " ", name).strip().casefold()


def _warning(role: str, code: str, what: str) -> str:
    return (
        f"{role}: the code {code!r:.60} {what}. If it is recorded at or after the outcome, the model reads the answer: "
        "leave it out."
    )
