"""The reviews of the training data, by user and by item."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from saccade.artifacts import ArtifactError
from saccade.data.errors import DataError
from saccade.data.storage import Stored, store

FILE = "reviews.arrow"

Side = Literal["user", "item"]
SIDES: tuple[Side, Side] = ("user", "item")


class ReviewLog:
    """The reviews of the training data: user, item, time and text.

    Args:
        users, items: (reviews,), the number of each review's user and item; numbers of known ones start at 1.
        times: (reviews,), NaN where unknown.
        texts: as they are shown.
        tokens: as models read them.
    """

    def __init__(
        self,
        users: Sequence[int],
        items: Sequence[int],
        times: Sequence[float],
        texts: Sequence[str],
        tokens: Sequence[Sequence[int]],
    ) -> None:
        self.of: dict[Side, NDArray[np.int64]] = {
            "user": np.asarray(users, dtype=np.int64),
            "item": np.asarray(items, dtype=np.int64),
        }
        self.times = np.asarray(times, dtype=np.float64)
        self.texts, self.tokens = list(texts), list(tokens)
        self.timed = not bool(np.isnan(self.times).all())
        self._worded = np.array([bool(each) for each in self.tokens], dtype=bool)
        self._rows = {side: self._grouped(side) for side in SIDES}

    def __len__(self) -> int:
        return len(self.times)

    def _grouped(self, side: Side) -> dict[int, NDArray[np.int64]]:
        """The reviews of each user or item, from the earliest to the latest."""
        owners = self.of[side]
        order = np.lexsort((self.times, owners))
        found, starts = np.unique(owners[order], return_index=True)
        return dict(zip(found.tolist(), np.split(order, starts[1:]), strict=True)) if len(order) else {}

    def reviews_of(self, side: Side, number: int) -> NDArray[np.int64]:
        """All reviews of a user or an item, including empty ones."""
        return self._rows[side].get(number, np.zeros(0, dtype=np.int64))

    def history(self, side: Side, number: int, *, other: int, before: float | None, most: int) -> list[int]:
        """The latest reviews of a user or an item that may be read to predict a rating.

        The review to be predicted is not among them, nor any other by this user of this item.

        Args:
            side: whether `number` is a user or an item.
            number: whose reviews to take; an unknown user or item has none.
            other: the item to be rated, or the user who rates.
            before: only reviews from earlier than this moment; None for all.
            most: how many at most.
        """
        rows = self.reviews_of(side, number)
        across = self.of["item" if side == "user" else "user"][rows]
        kept = (across != other) & self._worded[rows]
        if before is not None and self.timed:
            kept &= self.times[rows] < before  # not so where the time is unknown
        found: list[int] = rows[kept][-most:].tolist()
        return found

    def portable(self) -> dict[str, Any]:
        """All reviews in JSON's types, column by column."""
        times = [None if math.isnan(time) else time for time in self.times.tolist()]
        sides: dict[str, list[int]] = {side: numbers.tolist() for side, numbers in self.of.items()}
        return {**sides, "time": times, "text": self.texts, "tokens": [list(each) for each in self.tokens]}

    def save(self, folder: Path) -> None:
        """Writes all reviews into a folder that exists."""
        store(self._all(), folder / FILE, exact=True)

    def _all(self) -> Iterable[dict[str, Any]]:
        for row in range(len(self)):
            yield {
                "user": int(self.of["user"][row]),
                "item": int(self.of["item"][row]),
                "time": float(self.times[row]),
                "text": self.texts[row],
                "tokens": list(self.tokens[row]),
            }

    @staticmethod
    def load(folder: Path, *, users: int, items: int, vocab: int) -> ReviewLog:
        """What `save` wrote, checked against the numbers of users, items and tokens, the unknown one included."""
        path = folder / FILE
        columns: tuple[list[Any], ...] = ([], [], [], [], [])
        try:
            rows = list(Stored(path))
        except DataError as error:
            raise ArtifactError(str(error)) from None
        for row in rows:
            user, item, time, text, tokens = (row.get(name) for name in ("user", "item", "time", "text", "tokens"))
            fits = _below(user, users) and _below(item, items) and isinstance(text, str)
            fits = fits and isinstance(time, float) and not math.isinf(time)
            own = [] if tokens is None else tokens
            if not fits or not isinstance(own, list) or not all(_below(t, vocab) for t in own):
                raise ArtifactError(f"{path} is damaged: review {len(columns[0]) + 1} is not one of this model's data.")
            for column, value in zip(columns, (user, item, time, text, own), strict=True):
                column.append(value)
        return ReviewLog(*columns)


def _below(value: Any, limit: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < limit
