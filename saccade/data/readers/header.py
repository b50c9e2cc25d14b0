"""Does a table begin with a header?"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence

from saccade.data.errors import DataError
from saccade.data.readers.columns import Column, Columns, by_position, listed
from saccade.data.readers.odd_rows import is_odd

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,29}")

NAME = re.compile(r"(?=.{1,40}$)[^\W\d][\w.()/#-]*( [\w.()/#-]+){0,3}")
"""What may name a column: up to four words."""

_DIGIT = re.compile(r"\d").search
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)*([eE][+-]?\d+)?").fullmatch

ENOUGH = 5
"""How many rows with digits suggest that a first row without any is a header."""

SENTENCE = 5
"""More words than this are hardly the name of a column."""

COMMON = frozenset(
    """
    source target src tgt trg text texts label labels sentence sentence1 sentence2 premise hypothesis question answer
    context title body review reviews comment content document summary tweet message query passage word words token
    tokens tag tags lemma form features input inputs output outputs prompt response reference translation transcript
    transcription id idx index no path file filename filepath audio recording image picture caption url class category
    sentiment stars score rating value date locale language lang alignment split
    singular plural infinitive participle inflected pronunciation phonemes graphemes abbreviation expansion acronym
    intent utterance original corrected misspelt misspelled latin cyrillic
    ar bg bn ca cs da de el en es et eu fa fi fr ga gl he hi hr hu id is it ja ka kk ko lt lv mk ms mt nl nn no pl pt
    ro ru sk sl sq sr sv ta te th tr uk ur vi zh
    english german french spanish italian dutch portuguese russian chinese japanese czech polish turkish arabic
    """.split()  # noqa: SIM905 (a list of 130 strings would fill the page)
)
"""Names that columns usually have."""


def looks_like_header(first: Sequence[str], rows: Sequence[Sequence[str]], roles: Sequence[str]) -> bool:
    """Whether the first row is probably a header; errs on the safe side, since single words may well be data.

    Its cells are distinct names that do not recur below. Either all of them are usual names of columns, or one is
    and the rows below it look different: they hold sentences or numbers. Or every cell below has digits, and none
    above; or a column holds nothing but numbers. Or it differs from all rows below as they do not from each other.
    """
    cells = [cell.strip() for cell in first]
    if not rows or len(set(cells)) < len(cells) or not all(NAME.fullmatch(cell) for cell in cells):
        return False
    usual = COMMON | {role.lower() for role in roles}
    known = [cell.lower() in usual or re.split("[ _]", cell.lower())[-1] in usual for cell in cells]
    below = _below(len(cells), rows)
    if any(cell in column for cell, column in zip(cells, below, strict=True)):
        return False
    if len(rows) >= ENOUGH and not any(map(_DIGIT, cells)):
        digits = all(column and all(map(_DIGIT, column)) for column in below)
        if digits or any(column and all(map(_NUMBER, column)) for column in below):
            return True
    differs = [bool(column) and not any(IDENTIFIER.fullmatch(cell) for cell in column) for column in below]
    told = all(known) or any(name and other for name, other in zip(known, differs, strict=True))
    return told or is_odd(cells, below)


def looks_like_row(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether what was declared to be a header is probably the first example.

    One of its cells recurs below, as labels do; or it has numbers where all rows have numbers; or it contains a
    sentence, and no cell that could be a name.
    """
    cells = [cell.strip() for cell in header]
    below = _below(len(cells), rows)
    if any(cell and cell in column for cell, column in zip(cells, below, strict=True)):
        return True
    if any(IDENTIFIER.fullmatch(cell) for cell in cells):
        return False
    numbers = len(rows) >= ENOUGH and all(
        all(map(_DIGIT, [cell, *column])) for cell, column in zip(cells, below, strict=True)
    )
    return numbers or any(len(cell.split()) >= SENTENCE for cell in cells)


def _below(width: int, rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """The columns under the first row."""
    return [[row[place].strip() for row in rows if place < len(row)] for place in range(width)]


def choose_from_header(
    columns: Columns, header: Sequence[str], file: str, rows: Sequence[Sequence[str]] = ()
) -> dict[str, Column]:
    """The columns if the user said that there is a header, and nothing else.

    They are taken by equal names if all of them have one, else by position, unless a role's name is elsewhere.
    """
    if all(role in header for role in columns.required):
        return {role: list(header).index(role) for role in columns.roles if role in header}
    fits = len(header) in columns.usual_widths
    ordered = by_position(columns, len(header))
    if not fits or any(role in header and list(header).index(role) != place for role, place in ordered.items()):
        raise DataError(
            f"{file} has {len(header)} columns in its header ({listed(header)}), and {len(columns.required)} "
            f"{'is' if len(columns.required) == 1 else 'are'} needed ({', '.join(columns.required)}): say which, as "
            f"{columns.example_named(header, rows)}."
        )
    if len(header) not in columns.read_widths:
        warnings.warn(
            f"{file} has {len(header)} columns, and {columns.first_read()}: {listed(header)}. To read others, name "
            f"them, as {columns.example_named(header, rows)}.",
            stacklevel=2,
        )
    return ordered
