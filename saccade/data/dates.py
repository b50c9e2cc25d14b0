"""Dates as people write them, paired with what they mean: example data that needs no download.

    de Sonntag, 15. November 2026 -> 2026-11-15
    en-us 3/4/26                  -> 2026-03-04
    en-gb 3/4/26                  -> 2026-04-03
    15 novembre 2026              -> 2026-11-15

A source starts with the language (and the country, where it matters) whenever the date is ambiguous, and in half of the
other cases. The forms come from Babel's CLDR data, from full to short, and vary the way people vary them: no weekday,
lower or upper case, no accents, ordinals, other separators, two-digit years. Two digits stand for 1950 to 2049. Each
example has its gold alignment.
"""

from __future__ import annotations

import datetime
import hashlib
import random
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from saccade.data.date_forms import LOCALES, DateForm, DatePart, forms, is_clear, vary
from saccade.registry import nearest

SPLITS = ("train", "valid", "test")
FIRST, LAST = datetime.date(1900, 1, 1), datetime.date(2099, 12, 31)
RECENT = datetime.date(1970, 1, 1), datetime.date(2039, 12, 31)


class DateExample(NamedTuple):
    """One written date.

    Args:
        source: the date as written, such as "de 3. April 2026" or "3 avril 2026".
        target: the date in ISO 8601, "2026-04-03".
        locale: the locale of the form, "de".
        alignment: pairs `i-j` in Pharaoh format: character i of the source aligns with character j of the target.
    """

    source: str
    target: str
    locale: str
    alignment: str


def generate(
    count: int, *, split: str = "train", seed: int = 0, locales: Sequence[str] = LOCALES, tagged: float = 0.5
) -> Iterator[DateExample]:
    """Written dates; equal arguments give equal examples.

    Half of the dates lie between 1970 and 2039, the others anywhere between 1900 and 2099. The splits share no dates:
    about 90 % of all dates are for training, 5 % for validation and 5 % for testing, whatever the seed.

    Args:
        count: the number of examples.
        split: "train", "valid" or "test".
        seed: a different seed gives different examples of the same split.
        locales: names of Babel's locales with a Gregorian calendar.
        tagged: the share of unambiguous dates that start with their language anyway.
    """
    if split not in SPLITS:
        raise ValueError(f"Unknown split {split!r}.{nearest(split, SPLITS)}")
    if count < 0:
        raise ValueError(f"count must be at least 0, got {count}.")
    random_ = random.Random(f"{seed} {split}")
    anywhere = days(split, FIRST, LAST)
    recent = days(split, *RECENT)
    for _ in range(count):
        date = random_.choice(recent if random_.random() < 0.5 else anywhere)
        locale = random_.choice(locales)
        yield write(date, locale, random_.choice(forms(locale)), random_, tagged)


def write(date: datetime.date, locale: str, form: DateForm, random_: random.Random, tagged: float) -> DateExample:
    """The date in a variation of the form, preceded by the language where it is needed."""
    parts = vary(form, date, locale, random_)
    if not is_clear(parts, date) or random_.random() < tagged:
        parts = [DatePart(f"{locale.lower().replace('_', '-')} "), *parts]
    target = date.isoformat()
    return DateExample("".join(part.text for part in parts), target, locale, align(parts, target))


FIELDS = {"year": range(4), "month": range(5, 7), "day": range(8, 10)}


def align(parts: Sequence[DatePart], target: str) -> str:
    """Digits align with equal digits, counted from the end; a word aligns with its whole field, as do padding zeros."""
    pairs: list[tuple[int, int]] = []
    start = 0
    for part in parts:
        source = range(start, start + len(part.text))
        start = source.stop
        places = FIELDS.get(part.field or "", range(0))
        if part.text.isdecimal():
            matched = min(len(source), len(places))
            pairs += zip(source[-matched:], places[-matched:], strict=True) if matched else ()
            places = places[: len(places) - matched]
        pairs += [(i, j) for i in source for j in places]
    return " ".join(f"{i}-{j}" for i, j in sorted(pairs))


@cache
def days(split: str, first: datetime.date, last: datetime.date) -> Sequence[datetime.date]:
    """The dates of a split, which depends only on a hash of the date."""
    every = (datetime.date.fromordinal(day) for day in range(first.toordinal(), last.toordinal() + 1))
    return [date for date in every if split_of(date) == split]


def split_of(date: datetime.date) -> str:
    """The split that a date belongs to."""
    lot = hashlib.blake2s(date.isoformat().encode()).digest()[0] % 20
    return {0: "valid", 1: "test"}.get(lot, "train")
