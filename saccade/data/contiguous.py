"""One long text, read in order by several streams at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saccade.data.batches import TokenBatches

CARRIED = "carried."
"""The prefix of tensors in a batch of pieces that a model carried over from earlier pieces."""


class Pieces(Sequence[dict[str, Any]]):
    """Rows of tokens, joined into one text, which is divided among streams and cut into pieces.

    Stream s reads the s-th part of the text from its beginning to its end. Piece `c * streams + s` is the c-th of that
    stream: its tokens after the token before them, so that every token is predicted once. The last stream may be
    shorter, and ends with pieces that predict nothing.

    Args:
        rows: the tokens of each text, in order.
        begin: the token before the first one.
        streams: how many parts are read at the same time.
        length: how many tokens of a piece are predicted.
        role: the name that a row has for its tokens.
    """

    def __init__(
        self, rows: Iterable[dict[str, Any]], *, begin: int, streams: int, length: int, role: str = "text"
    ) -> None:
        parts = [np.asarray([begin]), *(np.asarray(row[role]) for row in rows)]
        self.tokens: NDArray[np.int64] = np.concatenate(parts).astype(np.int64)
        self.total = len(self.tokens) - 1
        self.streams = max(1, min(streams, self.total))
        self.length, self.role = length, role
        self.share = -(-self.total // self.streams)
        """How many tokens a stream predicts; the last may have fewer."""

    def __len__(self) -> int:
        return self.streams * -(-self.share // self.length)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(len(self)))]
        column, stream = divmod(range(len(self))[place], self.streams)
        start = min(stream * self.share + column * self.length, self.total)
        end = min(start + self.length, (stream + 1) * self.share, self.total)
        return {self.role: self.tokens[start : max(start, end) + 1].tolist()}

    def begins(self, places: Sequence[int]) -> bool:
        """Whether these are first pieces, before which nothing has been read."""
        return not places or min(places) < self.streams


class OrderedBatches(TokenBatches):
    """Batches of pieces in the order of the text, the same in every epoch: the next piece of every stream.

    Args:
        pieces: of the text.
        shard, shards: the index of this shard, and how many there are; each reads the same streams throughout.
    """

    def __init__(self, pieces: Pieces, *, shard: int = 0, shards: int = 1) -> None:
        sizes = [len(piece[pieces.role]) for piece in pieces]
        budget = pieces.streams * pieces.length
        super().__init__(sizes, budget=budget, shuffle=False, shard=shard, shards=shards)
        self.streams = pieces.streams

    def _make_plan(self) -> list[NDArray[np.int64]]:
        return np.split(np.arange(len(self._sizes)), len(self._sizes) // self.streams) if len(self._sizes) else []


def carried(batch: Mapping[str, Any]) -> dict[str, Any]:
    """The carried tensors of a batch, by name."""
    return {name.removeprefix(CARRIED): tensor for name, tensor in batch.items() if name.startswith(CARRIED)}
