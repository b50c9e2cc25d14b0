"""Alignment file formats: Pharaoh and talp, NAACL, JSON."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from saccade.data.cell import Cell, text_of
from saccade.data.errors import BadRow
from saccade.data.readers.files import check_file
from saccade.data.readers.jsonl import DEEPEST, depth
from saccade.data.readers.lines import numbered_lines
from saccade.interpretation.alignments.extraction import Link
from saccade.registry import nearest

Format = Literal["pharaoh", "talp", "naacl", "json"]
FORMATS: tuple[Format, ...] = ("pharaoh", "talp", "naacl", "json")

SUFFIXES: dict[str, Format] = {
    ".talp": "talp",
    ".naacl": "naacl",
    ".wa": "naacl",
    ".nonullalign": "naacl",
    ".json": "json",
    ".jsonl": "json",
}

PAIR = re.compile(r"(\d{1,7})([-p])(\d{1,7})")
MOST_WORDS = 10**7
MOST_SENTENCES = 10**6
"""The maximum sentence number in a NAACL file if the number of sentence pairs is unknown."""


class Alignment(NamedTuple):
    """The links of one sentence pair: the sure links, and all possible links including the sure ones."""

    sure: frozenset[Link]
    possible: frozenset[Link]

    @classmethod
    def of(cls, sure: Iterable[Link], possible: Iterable[Link] = ()) -> Alignment:
        """Creates an alignment from sure links and additional possible links."""
        certain = frozenset(sure)
        return cls(certain, certain | frozenset(possible))


def read_alignments(
    path: str | os.PathLike[str],
    *,
    format: Format | None = None,
    one_based: bool = False,
    sentences: int | None = None,
) -> list[Alignment]:
    """Reads the alignments of a file, one for each sentence pair.

    | format | each sentence |
    | --- | --- |
    | pharaoh, talp | one line, `0-0 1-2 2p1`: source, `-` if sure or `p` if possible, target |
    | naacl | lines `sentence source target [S or P] [confidence]`, all counted from 1, 0 for no word |
    | json | one line, `{"sure": [[0, 0], [1, 2]], "possible": [[2, 1]]}`, counted from 0 |

    Args:
        path: the file.
        format: by default, determined by the suffix: .naacl, .wa and .nonullalign, .json and .jsonl; otherwise pharaoh.
        one_based: whether the words of a Pharaoh or talp file are counted from 1.
        sentences: the number of sentence pairs; a NAACL file does not mention those without links.
    """
    chosen = SUFFIXES.get(Path(path).suffix, "pharaoh") if format is None else _check_format(format)
    if chosen == "naacl":
        found = _read_naacl(path, sentences)
    else:
        read = _read_json if chosen == "json" else read_pharaoh
        found = [read(line, place, one_based) for place, line in _lines(path)]
    if sentences is not None and len(found) != sentences:
        raise ValueError(
            f"{os.fspath(path)} has alignments of {len(found)} sentence pair{'s' * (len(found) != 1)}, not of "
            f"{sentences}."
        )
    return found


def format_alignment(
    alignment: Alignment, format: Format = "pharaoh", *, number: int = 1, one_based: bool = False
) -> str:
    """Formats one sentence pair as one line, or in NAACL format as one line per link; see `read_alignments`.

    Args:
        alignment: the links.
        format: one of `FORMATS`.
        number: the number of the sentence pair, counted from 1, which NAACL format includes.
        one_based: whether Pharaoh and talp count words from 1.
    """
    _check_format(format)
    merely = alignment.possible - alignment.sure
    if format == "json":
        return json.dumps({"sure": sorted(alignment.sure), "possible": sorted(merely)})
    shift = int(one_based or format == "naacl")
    marked = sorted([(s, t, True) for s, t in alignment.sure] + [(s, t, False) for s, t in merely])
    if format == "naacl":
        return "\n".join(f"{number} {s + shift} {t + shift} {'S' if sure else 'P'}" for s, t, sure in marked)
    return " ".join(f"{s + shift}{'-' if sure else 'p'}{t + shift}" for s, t, sure in marked)


def _check_format(format: str) -> Format:
    if format not in FORMATS:
        raise ValueError(f"Unknown alignment format {format!r}.{nearest(format, FORMATS)}")
    return format


def _lines(path: str | os.PathLike[str]) -> Iterator[tuple[str, str]]:
    """Each line, with its location for error messages."""
    for number, line in numbered_lines(check_file(os.fspath(path))):
        if isinstance(line, BadRow):
            raise line
        text = text_of(line, Cell(os.fspath(path), number, "alignment"), may_be_empty=True)
        yield f"{os.fspath(path)}, line {number}", text.strip("\ufeff \t\r\n")


def read_pharaoh(line: str, place: str = "The alignment", one_based: bool = False) -> Alignment:
    """The links of one line, `0-0 1-2 2p1`; `place` is its location for error messages."""
    sure: list[Link] = []
    possible: list[Link] = []
    for pair in line.split():
        match = PAIR.fullmatch(pair)
        if match is None:
            raise ValueError(
                f"{place}: {pair!r:.60} is not a link. Write links as 0-2 (sure) or 0p2 (possible), source first, "
                "separated by spaces; for other files, specify the format."
            )
        source, target = int(match[1]) - one_based, int(match[3]) - one_based
        if min(source, target) < 0:
            raise ValueError(f"{place}: {pair!r} has a word 0, but words are counted from 1 here: omit one_based.")
        (sure if match[2] == "-" else possible).append((source, target))
    return Alignment.of(sure, possible)


def _read_json(line: str, place: str, one_based: bool) -> Alignment:
    try:
        found: Any = json.loads(line) if depth(line) <= DEEPEST else None
        return Alignment.of(_pairs(found["sure"]), _pairs(found.get("possible", [])))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ValueError(
            f'{place} is not an alignment. Each line must be {{"sure": [[0, 0], [1, 2]], "possible": [[2, 1]]}}, '
            "with pairs of source and target words counted from 0."
        ) from None


def _pairs(found: Any) -> list[Link]:
    pairs = [(source, target) for source, target in found]
    if not all(type(place) is int and 0 <= place < MOST_WORDS for pair in pairs for place in pair):
        raise ValueError
    return pairs


def _read_naacl(path: str | os.PathLike[str], sentences: int | None) -> list[Alignment]:
    links: dict[int, tuple[list[Link], list[Link]]] = {}
    for place, line in _lines(path):
        fields = line.split()
        if not fields:
            continue
        numbers, mark = fields[:3], fields[3] if len(fields) > 3 else "S"
        whole = all(number.isdecimal() and len(number) < 10 for number in numbers)
        if len(numbers) < 3 or not whole or mark not in ("S", "P") or len(fields) > 5:
            raise ValueError(
                f"{place}: {line!r:.60} is not a link in NAACL format, which is: sentence source target, counted from "
                "1, then S for sure or P for possible; for other files, specify the format."
            )
        sentence, source, target = map(int, numbers)
        most = MOST_SENTENCES if sentences is None else sentences
        if not 1 <= sentence <= most:
            raise ValueError(f"{place}: sentence {sentence} must be from 1 to {most}.")
        of_sentence = links.setdefault(sentence, ([], []))
        if source and target:  # 0 means no word
            of_sentence[mark == "P"].append((source - 1, target - 1))
    count = max(links, default=0) if sentences is None else sentences
    return [Alignment.of(*links.get(number, ([], []))) for number in range(1, count + 1)]
