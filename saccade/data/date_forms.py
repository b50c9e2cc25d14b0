"""Written forms of dates: the patterns of Babel's CLDR data, and variations of them."""

from __future__ import annotations

import datetime
import random
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from saccade.data.extra import required

LOCALES = (
    *("cs", "da", "de", "el", "en_GB", "en_US", "es", "fi", "fr", "he", "hu", "id", "it"),
    *("ja", "ko", "nb", "nl", "pl", "pt", "ro", "ru", "sv", "tr", "uk", "zh"),
)
"""Two dozen languages, with English for two countries."""

TWO_DIGITS = range(1950, 2050)
"""The years that may be written with two digits."""

DateForm = tuple[tuple[str, str], ...]
"""Pieces of a pattern: ("year", "y"), ("month", "MMMM"), ("day", "d"), ("weekday", "EEEE"), ("", ", ")."""

NAMES = {"y": "year", "M": "month", "L": "month", "d": "day", "E": "weekday", "c": "weekday"}
SEPARATORS = {".": (".", ". ", "/", "-"), "/": ("/", "-", "."), "-": ("-", "/", ".")}
ORDINALS = {"fr": {1: "er"}, "it": {1: "º"}, "es": {1: "º"}, "pt": {1: "º"}, "nl": dict.fromkeys(range(1, 32), "e")}
ACCENTLESS = frozenset(("cs", "da", "de", "es", "fi", "fr", "hu", "it", "nb", "nl", "pl", "pt", "ro", "sv", "tr"))
CASELESS = frozenset(("el", "tr"))
"""Languages in which changing case takes more than changing each letter."""


class DatePart(NamedTuple):
    """A piece of a written date, and which of "year", "month" and "day" it expresses, if any."""

    text: str
    field: str | None = None


@cache
def forms(locale: str) -> Sequence[DateForm]:
    """The forms of a locale; common ones are listed more than once, so that they are drawn more often.

    These are CLDR's four, variants with a short weekday and a short month, and numbers with other separators.
    """
    dates = required("babel.dates")
    styles = {
        style: parse(dates.get_date_format(style, locale).pattern) for style in ("full", "long", "medium", "short")
    }
    full, long, medium, short = styles.values()
    brief = tuple(("weekday", "EEE") if field == "weekday" else (field, text) for field, text in full)
    shorter = tuple(("month", "MMM") if field == "month" and text == "MMMM" else (field, text) for field, text in brief)
    iso = (("year", "yyyy"), ("", "-"), ("month", "MM"), ("", "-"), ("day", "dd"))
    return [full, full, brief, shorter, long, long, long, medium, medium, short, short, *numeric(short), iso]


def numeric(short: DateForm) -> list[DateForm]:
    """Numbers in the order of the short form, with other separators, and with or without leading zeros."""
    order = [field for field, _ in short if field in ("year", "month", "day")]
    usual = next((text.strip()[:1] for field, text in short if not field and text.strip()[:1] in SEPARATORS), "/")
    found: list[DateForm] = []
    for separator in SEPARATORS[usual]:
        for month, day in (("M", "d"), ("MM", "dd")):
            fields = [(field, {"year": "y", "month": month, "day": day}[field]) for field in order]
            found.append((fields[0], ("", separator), fields[1], ("", separator), fields[2]))
    return found


def parse(pattern: str) -> DateForm:
    """The pieces of a CLDR pattern, with narrow and non-breaking spaces replaced by plain ones."""
    pieces = []
    for kind, value in required("babel.dates").tokenize_pattern(pattern):
        if kind == "field":
            pieces.append((NAMES[value[0]], value[0] * value[1]))
        else:
            pieces.append(("", "".join(" " if c.isspace() else c for c in value)))
    return tuple(pieces)


def vary(form: DateForm, date: datetime.date, locale: str, random_: random.Random) -> list[DatePart]:
    """The date in this form, varied as people would."""
    draw = random_.random
    if date.year not in TWO_DIGITS:
        form = tuple((field, "y") if text == "yy" else (field, text) for field, text in form)
    elif draw() < 0.3:
        form = tuple((field, "yy") if text == "y" else (field, text) for field, text in form)
    written = [piece for field, text in form for piece in fill(field, text, date, locale)]
    if draw() < 0.3:
        written = ordinal(written, date, locale)
    if draw() < 0.2:  # no comma, no full stop of an abbreviation
        written = [
            (f, t.replace(",", "") if not f else t.rstrip(".") if f in ("month", "weekday") else t) for f, t in written
        ]
    case = draw()
    change = str.lower if case < 0.25 else str.upper if case < 0.3 else str
    if change is not str and locale not in CASELESS:
        written = [(f, t if f in ("day", "year") else change(t)) for f, t in written]
    if locale in ACCENTLESS and draw() < 0.1:
        written = [(f, without_accents(t)) for f, t in written]
    parts = [
        DatePart(unicodedata.normalize("NFC", t), f if f in ("year", "month", "day") else None) for f, t in written
    ]
    return tidy(parts)


def fill(field: str, text: str, date: datetime.date, locale: str) -> list[tuple[str, str]]:
    """A piece of the form with its value; in Korean "11월", only the number expresses the month."""
    if not field:
        return [(field, text)]
    value = rendered(locale, date, text)
    number = value.rstrip("월")
    return [(field, number), ("", value[len(number) :])] if number.isdecimal() else [(field, value)]


def ordinal(written: list[tuple[str, str]], date: datetime.date, locale: str) -> list[tuple[str, str]]:
    """With "15th" in place of 15 if the month is a word and the language has such ordinals."""
    language = locale.partition("_")[0]
    ending = english_ending(date.day) if language == "en" else ORDINALS.get(language, {}).get(date.day)
    if ending is None or any(field == "month" and text[:1].isdecimal() for field, text in written):
        return written
    found = []
    for field, text in written:
        found.append((field, text))
        if field == "day":
            found.append(("", ending))
    return found


def english_ending(day: int) -> str:
    """As in 1st, 2nd, 3rd, 4th."""
    return "th" if day in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


def without_accents(text: str) -> str:
    """The text with each letter replaced by its base letter."""
    return "".join(unicodedata.normalize("NFD", character)[0] for character in text)


def tidy(parts: list[DatePart]) -> list[DatePart]:
    """Without spaces or commas at the ends, and without double spaces."""
    found: list[DatePart] = []
    for part in parts:
        text = part.text
        if part.field is None and (not found or found[-1].text.endswith(" ")):
            text = text.lstrip(" ,")
        if text:
            found.append(part._replace(text=text))
    if found and found[-1].field is None:
        found[-1] = found[-1]._replace(text=found[-1].text.rstrip(" ,"))
    return [part for part in found if part.text]


def rendered(locale: str, date: datetime.date, field: str) -> str:
    """One field of the date; `field` is in CLDR's notation."""
    if field[0] == "y":
        return f"{date.year % 100:02}" if field == "yy" else str(date.year)
    if field[0] == "d":
        return f"{date.day:0{len(field)}}"
    if NAMES[field[0]] == "month":
        return named(locale, datetime.date(2000, date.month, 1), field)
    return named(locale, datetime.date(2000, 1, 3 + date.weekday()), field)  # 3 January 2000 was a Monday


@cache
def named(locale: str, date: datetime.date, field: str) -> str:
    """The name of the month or of the weekday."""
    text = required("babel.dates").DateTimeFormat(date, required("babel").Locale.parse(locale))[field]
    return "".join(" " if c.isspace() else c for c in text if c not in "\u200e\u200f")


def is_clear(parts: Sequence[DatePart], date: datetime.date) -> bool:
    """Whether the date is unambiguous in any language.

    It is if the year has all its digits and, besides, the month is a word with one meaning, the year comes first, or
    day and month cannot be swapped.
    """
    texts = {part.field: part.text for part in parts if part.field}
    if len(texts["year"]) < 4:
        return False
    if not texts["month"].isdecimal():
        return len(meanings().get(plain(texts["month"]), ())) <= 1
    first = next(part.field for part in parts if part.field)
    return first == "year" or date.day > 12 or date.day == date.month


def plain(name: str) -> str:
    """A month's name without case, accents and full stops."""
    return without_accents(name.lower()).rstrip(".")


@cache
def meanings() -> dict[str, frozenset[int]]:
    """Maps the names of months in all languages to the months they can mean."""
    found: dict[str, frozenset[int]] = {}
    for locale in LOCALES:
        for month in range(1, 13):
            for field in ("MMM", "MMMM"):
                name = plain(rendered(locale, datetime.date(2000, month, 1), field))
                found[name] = found.get(name, frozenset()) | {month}
    return found
