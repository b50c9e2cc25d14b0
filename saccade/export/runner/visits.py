"""Records of visits: the codes of each, and the time between them."""

import json
import math
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np

FURTHEST = 1e6  # standard deviations


class InputReader:
    def __init__(self, about):
        self.most, self.books = about["max_visits"], {name: Book(about[name]) for name in ("visits", "static")}

    def encode(self, value, most=None):
        """A list of visits, each a list of codes or {"time": ..., "codes": ...}; or {"visits": ..., "static": ...}."""
        value = json.loads(value) if isinstance(value, str) else value
        record = value if isinstance(value, dict) else {"visits": value}
        given = record.get("visits")
        if not isinstance(given, list | tuple) or not given or set(record) - {"visits", "static", "name"}:
            raise ValueError(f"A record is a list of visits, not {value!r:.60}.")
        visits = [visit if isinstance(visit, dict) else {"codes": visit} for visit in given]
        times = [moment(visit.get("time")) for visit in visits]
        if None in times and set(times) != {None}:
            raise ValueError("Date all visits, or none.")
        if any(None not in pair and pair[1] < pair[0] for pair in pairwise(times)):
            raise ValueError("The visits are not sorted by time.")
        gaps = [0.0, *(math.log1p(after - before) if before is not None else 0.0 for before, after in pairwise(times))]
        whens = [shown(visit.get("time")) or f"visit {number}" for number, visit in enumerate(visits, start=1)]
        static = record.get("static") or {}
        static = {key: each for key, each in static.items() if each is not None} if isinstance(static, dict) else static
        return {
            "codes": [self.books["visits"].features(visit.get("codes", ())) for visit in visits][-self.most :],
            "gaps": gaps[-self.most :],
            "names": whens[-self.most :],
            "static": self.books["static"].features(static),
        }

    def size(self, encoded):
        return len(encoded["codes"])

    def names(self, encoded, count=None):
        return encoded["names"]

    def seen(self, encoded, weights):
        return weights[..., : len(encoded["names"])], encoded["names"]

    def pad(self, several):
        visits = max(len(each["codes"]) for each in several)
        width = max(1, *(len(codes) for each in several for codes in each["codes"]))
        values, amounts = np.zeros((2, len(several), visits, width))
        static, static_amounts = np.zeros((2, len(several), max(1, *(len(each["static"]) for each in several))))
        mask, gaps = np.zeros((len(several), visits), dtype=bool), np.zeros((len(several), visits), dtype=np.float32)
        for row, each in enumerate(several):
            count = len(each["codes"])
            mask[row, :count], gaps[row, :count] = True, each["gaps"]
            for place, codes in enumerate(each["codes"]):
                fill(values[row, place], amounts[row, place], codes)
            fill(static[row], static_amounts[row], each["static"])
        whole, real = {"values": values, "static": static}, {"amounts": amounts, "static_amounts": static_amounts}
        found = {name: array.astype(np.int64) for name, array in whole.items()}
        found |= {name: array.astype(np.float32) for name, array in real.items()}
        return {**found, "mask": mask, "gaps": gaps}


class Book:
    """The ids of codes, and of the numbers that some have."""

    def __init__(self, saved):
        names, self.scales = saved["names"], saved["scales"]
        self.ids = {name: number for number, name in enumerate(names, start=1)}
        self.numbers = {name: number for number, name in enumerate(self.scales, start=1 + len(names))}

    def features(self, codes):
        """(id, amount) of each code that the model knows, and of its number."""
        found = []
        for name, number in collected(codes.items() if isinstance(codes, dict) else ((code, None) for code in codes)):
            if name not in self.ids:
                continue
            found.append((self.ids[name], 1.0))
            if number is not None and name in self.scales:
                mean, deviation = self.scales[name]
                found.append((self.numbers[name], min(max((number - mean) / deviation, -FURTHEST), FURTHEST)))
        return found


def collected(pairs):
    """Names with their numbers, each once; a value that is no number is part of the name, and false leaves it out."""
    found = {}
    for name, value in pairs:
        name = str(name).strip()
        if not name or value is False:
            continue
        if isinstance(value, str):
            text, value = value.strip(), number_of(value)
            name = f"{name}={text}" if text and value is None else name
        if value is None or value is True or math.isnan(value):
            found.setdefault(name, None)
        else:
            found[name] = float(value)
    return found.items()


def number_of(text):
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None


def moment(raw):
    """A time in days: a number, or a date as in ISO 8601."""
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return None
    number = number_of(raw) if isinstance(raw, str) else raw
    if number is not None:
        return float(number)
    date = datetime.fromisoformat(raw.strip())
    date = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
    return (date - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() / 86400


def shown(raw):
    return f"{raw:.15g}" if isinstance(raw, float) else "" if raw is None else str(raw).strip()


def fill(ids, amounts, codes):
    for place, (number, amount) in enumerate(codes):
        ids[place], amounts[place] = number, amount
