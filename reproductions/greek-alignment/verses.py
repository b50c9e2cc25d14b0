"""The Greek New Testament in English, verse by verse, with manually annotated word links."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Iterator
from importlib.metadata import files
from pathlib import Path
from typing import NamedTuple

PACKAGE = "bible-alignments"
GREEK, ENGLISH, LINKS = "SBLGNT.tsv", "nt_BSB.tsv", "SBLGNT-BSB-manual.json"


class Verse(NamedTuple):
    """A verse in both languages, lower-cased, and (Greek word, English word) for each link."""

    name: str
    greek: list[str]
    english: list[str]
    links: set[tuple[int, int]]

    @property
    def split(self) -> str:
        """Split by chapter, so that neighbouring verses stay together: 5, 15 and 25 test, 10 and 20 validation."""
        return {5: "test", 0: "valid"}.get(int(self.name[2:5]) % 10, "train")


def read_verses() -> list[Verse]:
    """All verses with words on both sides and at least one link."""
    greek, english, links = defaultdict(list), defaultdict(list), defaultdict(set)
    places = {}
    for row in _table(_installed(GREEK)):
        verse = row["id"][1:9]
        places[row["id"]] = verse, len(greek[verse])
        greek[verse].append(row["text"].lower())
    for row in _table(_installed(ENGLISH)):
        if not row["exclude"]:  # punctuation, which has no links
            verse = row["source_verse"]
            places[row["id"]] = verse, len(english[verse])
            english[verse].append(row["text"].lower())
    for record in json.loads(_installed(LINKS).read_text(encoding="utf-8"))["records"]:
        for source in record["source"]:
            for target in record["target"]:
                (verse, i), (other, j) = places[source], places[target]
                if verse == other:  # a few links cross verse boundaries
                    links[verse].add((i, j))
    return [Verse(name, greek[name], english[name], links[name]) for name in sorted(links)]


def _installed(name: str) -> Path:
    return Path(str(next(file for file in files(PACKAGE) or () if file.name == name).locate()))


def _table(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
