"""How patient records are written: nested, or as the rows of a long table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import pairwise
from typing import Any, NamedTuple, TypedDict

from saccade.artifacts import ArtifactError, parse_json
from saccade.data.cell import Cell, shown, text_of

ROWS = "rows"
"""The key of the rows of a long table, as `gather` passes them to `read`."""

FORM = 'Write a list of visits, such as [["I10", "E11"], {"time": "2024-05-01", "codes": {"glucose": 7.1}}].'
SECONDS_A_DAY = 86400.0


class Codes(TypedDict):
    """What was recorded: names, each with a number where it has one."""

    codes: list[str]
    numbers: list[float | None]


class Visit(Codes):
    """What was recorded at one time."""

    time: float | None
    """In days."""
    when: str
    """The time as written in the data; empty if missing."""


class Record(TypedDict):
    """The visits of one patient, from the first to the last."""

    name: str
    visits: list[Visit]
    static: Codes
    """What belongs to the patient, regardless of time."""


class VisitTime(NamedTuple):
    """A time, and how it was written."""

    days: float
    text: str
    dated: bool


def read_record(raw: Any, cell: Cell) -> Record:
    """A record from one cell: a list of visits, `{"visits": [...], "static": {...}}`, or either as JSON."""
    if isinstance(raw, str):
        raw = parsed(raw, cell)
    if isinstance(raw, Mapping) and ROWS in raw:
        return _from_rows(raw[ROWS], text_of(raw.get("name"), cell, may_be_empty=True), cell)
    static: Any = None
    name = ""
    if isinstance(raw, Mapping):
        strange = next((key for key in raw if key not in ("visits", "static", "name")), None)
        if strange is not None or "visits" not in raw:
            problem = (
                "has no visits" if strange is None else f"has {strange!r:.40}, which is not visits, static or name"
            )
            raise cell.bad(f"the {cell.role} {problem}", FORM)
        static, name, raw = raw.get("static"), raw.get("name") or "", raw["visits"]
        name = text_of(name, cell, may_be_empty=True)
    if not isinstance(raw, list | tuple):
        raise cell.bad(f"the {cell.role} is not a list of visits but {shown(raw)}", FORM)
    visits = [_visit(each, place, cell) for place, each in enumerate(raw, start=1)]
    _check_order(visits, cell)
    return _complete({"name": name, "visits": visits, "static": _static(static, cell)}, cell)


def parsed(raw: str, cell: Cell) -> Any:
    """A cell of JSON."""
    if not raw.lstrip().startswith(("[", "{")):
        raise cell.bad(f"the {cell.role} is not a list of visits but {shown(raw)}, which is not valid JSON", FORM)
    try:
        return parse_json(raw.encode("utf-8", "surrogatepass"), f"the {cell.role}")
    except ArtifactError as error:
        raise cell.bad(str(error).rstrip("."), FORM) from None


def moment(raw: Any, cell: Cell) -> VisitTime | None:
    """A time: a number of days, a date or a date with a time of day as in ISO 8601; None if there is none."""
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return None
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        days = float(raw) if abs(raw) < 1e15 else math.nan
        if math.isnan(days):
            raise cell.bad(f"the time {shown(raw)} is not a finite number of days", "Write days, or dates.")
        return VisitTime(days, f"{raw:.15g}" if isinstance(raw, float) else str(raw), False)
    if isinstance(raw, date):
        found, text = raw, raw.isoformat()
    else:
        text = text_of(raw, cell).strip()
        number = number_of(text)
        if number is not None:
            return moment(number, cell)._replace(text=text)  # type: ignore[union-attr]
        try:
            found = datetime.fromisoformat(text)
        except ValueError:
            fix = "Write a number of days, or a date such as 2024-05-01 or 2024-05-01T14:30."
            raise cell.bad(f"the time {text!r:.40} is neither a number nor a date", fix) from None
    whole = found if isinstance(found, datetime) else datetime(found.year, found.month, found.day)
    aware = whole if whole.tzinfo is not None else whole.replace(tzinfo=UTC)
    return VisitTime((aware - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() / SECONDS_A_DAY, text, True)


def number_of(text: str) -> float | None:
    """A finite number, or None."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None


def by_time(rows: Iterable[Sequence[Any]], cell: Cell) -> tuple[dict[float, list[Sequence[Any]]], list[Sequence[Any]]]:
    """Rows whose first cell is a time: those of each time, in order, and those without one."""
    found: dict[float, list[Sequence[Any]]] = {}
    always: list[Sequence[Any]] = []
    kinds: dict[bool, str] = {}
    for row in rows:
        when = moment(row[0], cell)
        if when is None:
            always.append(row)
            continue
        kinds.setdefault(when.dated, when.text)
        found.setdefault(when.days, []).append((when, *row[1:]))
    _check_kinds(kinds, cell)
    return dict(sorted(found.items())), always


def _from_rows(rows: Any, name: str, cell: Cell) -> Record:
    """The record of the rows of a long table: (time, code) or (time, code, value)."""
    wide = isinstance(rows, list | tuple) and all(isinstance(row, list | tuple) and len(row) in (2, 3) for row in rows)
    if not wide:
        raise cell.bad(
            f"the {cell.role} of a long table takes two or three columns", "Give time+code, or time+code+value."
        )
    timed, always = by_time(rows, cell)
    visits: list[Visit] = [
        {"time": days, "when": several[0][0].text, **_collected((row[1:] for row in several), cell)}
        for days, several in timed.items()
    ]
    return _complete({"name": name, "visits": visits, "static": _collected((row[1:] for row in always), cell)}, cell)


def _complete(record: Record, cell: Cell) -> Record:
    if not record["visits"]:
        raise cell.bad(f"the {cell.role} has no visits", "Give at least one visit, or skip such rows.")
    return record


def _visit(raw: Any, place: int, cell: Cell) -> Visit:
    when = None
    codes = raw
    if isinstance(raw, Mapping):
        strange = next((key for key in raw if key not in ("time", "codes")), None)
        if strange is not None:
            problem = f"visit {place} of the {cell.role} has {strange!r:.40}, which is neither time nor codes"
            raise cell.bad(problem, FORM)
        when, codes = moment(raw.get("time"), cell), raw.get("codes", ())
    found = _codes(codes, f"visit {place} of the {cell.role}", cell)
    return {"time": None if when is None else when.days, "when": "" if when is None else when.text, **found}


def _static(raw: Any, cell: Cell) -> Codes:
    if isinstance(raw, Mapping):  # a feature without a value is unknown
        raw = {name: value for name, value in raw.items() if value is not None}
    return _codes(() if raw is None else raw, f"static of the {cell.role}", cell)


def _codes(raw: Any, what: str, cell: Cell) -> Codes:
    if isinstance(raw, Mapping):
        return _collected(raw.items(), cell)
    if not isinstance(raw, list | tuple):
        raise cell.bad(f"{what} is not a list of codes but {shown(raw)}", FORM)
    return _collected(((code,) for code in raw), cell)


def _collected(rows: Iterable[Sequence[Any]], cell: Cell) -> Codes:
    """Codes with their values, each once; the last of several numbers counts."""
    found: dict[str, float | None] = {}
    for code, *values in rows:
        if code is not None and not isinstance(code, str | int):
            raise cell.bad(f"a code of the {cell.role} is not a text but {type(code).__name__} ({shown(code)})", FORM)
        name = text_of(code, cell, may_be_empty=True).strip()
        if not name:  # a row of a visit at which nothing was recorded
            continue
        kept = _valued(name, values[0] if values else None, cell)
        if kept is not None:
            name, number = kept
            if number is not None or name not in found:
                found[name] = number
    return {"codes": list(found), "numbers": list(found.values())}


def _valued(name: str, value: Any, cell: Cell) -> tuple[str, float | None] | None:
    """A code with its number; other values become part of its name, and false leaves it out."""
    if isinstance(value, bool):
        return (name, None) if value else None
    if value is None or (isinstance(value, float) and math.isnan(value)):  # how tables write a missing number
        return name, None
    if isinstance(value, int | float):
        if not abs(value) < 1e30:
            raise cell.bad(f"the value of {name!r:.40} is {shown(value)}, not a finite number", "Correct it.")
        return name, float(value)
    text = text_of(value, cell, may_be_empty=True).strip()
    number = number_of(text)
    if number is not None:
        return _valued(name, number, cell)
    return (f"{name}={text}" if text else name), None


def _check_order(visits: Sequence[Visit], cell: Cell) -> None:
    timed = [visit["time"] is not None for visit in visits]
    if any(timed) and not all(timed):
        raise cell.bad(f"visit {timed.index(False) + 1} of the {cell.role} has no time", "Date all visits, or none.")
    _check_kinds({number_of(visit["when"]) is None: visit["when"] for visit in visits if visit["when"]}, cell)
    for place, (one, two) in enumerate(pairwise(visits), start=1):
        if one["time"] is not None and two["time"] is not None and two["time"] < one["time"]:
            problem = f"visit {place + 1} of the {cell.role} ({two['when']}) is before visit {place} ({one['when']})"
            raise cell.bad(problem, "Sort the visits by time.")


def _check_kinds(kinds: Mapping[bool, str], cell: Cell) -> None:
    if len(kinds) > 1:
        raise cell.bad(
            f"the {cell.role} mixes dates ({kinds[True]}) and numbers of days ({kinds[False]})", "Use one of the two."
        )
