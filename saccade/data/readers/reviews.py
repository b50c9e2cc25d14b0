"""Reviews in the published layouts of Amazon and Yelp: `amazon:FILE` and `yelp:FILE`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from saccade.data.errors import BadRow
from saccade.data.readers.base import Reader, readers
from saccade.data.readers.columns import Columns, Record
from saccade.data.readers.files import check_file, stamp
from saccade.data.readers.jsonl import parse
from saccade.data.readers.lines import numbered_lines

NAMES = ("user", "item", "rating", "text", "time")
REQUIRED = ("user", "item")
"""The columns of a file of pairs to rate."""


class ReviewFile(Reader):
    """One JSON object a line, gzipped or not; its columns are renamed to user, item, rating, text and time."""

    layout: ClassVar[Mapping[str, Sequence[str]]] = {}
    """What each column is called in the file; the first of the names that an object has is read."""

    def __init__(self, source: Any, columns: Columns, *, header: bool | None = None) -> None:
        super().__init__(source, columns, header=header)
        self.file = str(check_file(self.name.removeprefix(self.prefix)))
        self.folder = Path(self.file).parent
        self.names = NAMES

    @classmethod
    def absolute(cls, source: str) -> str:
        return cls.prefix + os.path.abspath(source.removeprefix(cls.prefix))

    def rows(self) -> Iterator[tuple[int, Record | BadRow]]:
        for line, text in numbered_lines(Path(self.file)):
            found = text if isinstance(text, BadRow) else parse(text, self.name, line, self.columns)
            yield line, found if isinstance(found, BadRow) else self._renamed(found, line)

    def _renamed(self, found: Mapping[str, Any], line: int) -> Record | BadRow:
        row: dict[str, Any] = {}
        for name, known in self.layout.items():
            present = next((each for each in known if found.get(each) is not None), None)
            if present is None and name in REQUIRED:
                fix = f"This layout calls the {name} {' or '.join(known)}; read other files with data.columns."
                return BadRow(self.name, line, f"the review has no {name}", fix)
            row[name] = None if present is None else found[present]
        return row

    def stamp(self) -> str:
        return stamp(self.file)


@readers.register("amazon")
class Amazon(ReviewFile):
    """Reviews of products: the files of 2014 and 2018 (reviewerID, asin, overall) and of 2023 (user_id, parent_asin).

    Reference:
        McAuley et al. (2015), arXiv:1506.04757; Hou et al. (2024), arXiv:2403.03952.
    """

    prefix = "amazon:"
    layout: ClassVar = {
        "user": ("reviewerID", "user_id"),
        "item": ("parent_asin", "asin"),
        "rating": ("overall", "rating"),
        "text": ("reviewText", "text"),
        "time": ("unixReviewTime", "timestamp"),
    }


@readers.register("yelp")
class Yelp(ReviewFile):
    """Reviews of businesses: `yelp_academic_dataset_review.json` of the Yelp Open Dataset."""

    prefix = "yelp:"
    layout: ClassVar = {
        "user": ("user_id",),
        "item": ("business_id",),
        "rating": ("stars",),
        "text": ("text",),
        "time": ("date",),
    }
