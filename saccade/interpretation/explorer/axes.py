"""What the rows and the columns of an attention map stand for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True, kw_only=True)
class TextAxis:
    """The pieces of a text, in order.

    Args:
        pieces: as the model reads them; each is shown as it is written here.
        words: the places of the pieces of each word, so that subwords can be merged. A piece that no word holds stands
            for itself.
        special: the places of pieces that the text does not hold, such as `[CLS]` and `</s>`.
        sentences: the places of the pieces of each sentence.
    """

    pieces: Sequence[str]
    words: Sequence[Sequence[int]] | None = None
    special: Sequence[int] = ()
    sentences: Sequence[Sequence[int]] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.pieces, str) or not all(isinstance(piece, str) for piece in self.pieces):
            raise TypeError(f"pieces must be a list of strings, got {self.pieces!r:.80}.")
        _check_places([self.special], len(self.pieces), "special", empty=True)
        for name in ("words", "sentences"):
            groups = getattr(self, name)
            if groups is not None:
                _check_places(groups, len(self.pieces), name)

    @classmethod
    def from_encoding(cls, encoding: Any, row: int = 0) -> "TextAxis":
        """The pieces, words and special tokens of one row of what a fast tokeniser of Hugging Face returns."""
        if not getattr(encoding, "is_fast", False):
            raise TypeError(
                f"from_encoding takes what a fast tokeniser of Hugging Face returns, got {type(encoding).__name__}; "
                "write TextAxis(pieces=...) for others."
            )
        words: dict[tuple[int | None, int], list[int]] = {}
        special = []
        for place, (text, word) in enumerate(zip(encoding.sequence_ids(row), encoding.word_ids(row), strict=True)):
            if word is None:
                special.append(place)
            else:
                words.setdefault((text, word), []).append(place)
        return cls(pieces=encoding.tokens(row), words=list(words.values()), special=special)

    def __len__(self) -> int:
        return len(self.pieces)

    @property
    def names(self) -> list[str]:
        """What each row or column is called."""
        return list(self.pieces)


@dataclass(frozen=True, kw_only=True)
class ImageAxis:
    """The patches of a picture, line by line from the upper left.

    Args:
        png: the file, as it is.
        grid: how many lines and columns of patches.
        leading: what stands before the patches, such as `[CLS]` and registers.
    """

    png: bytes
    grid: tuple[int, int]
    leading: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not self.png.startswith(PNG):
            raise ValueError(f"png must hold a PNG file, got bytes that start with {self.png[:8]!r}.")
        if min(self.grid) < 1:
            raise ValueError(f"grid must be (lines, columns) of at least 1, got {self.grid}.")

    def __len__(self) -> int:
        return len(self.leading) + self.grid[0] * self.grid[1]

    @property
    def names(self) -> list[str]:
        """What stands before the patches, then `line,column` of each patch, counted from 1."""
        lines, columns = self.grid
        return [*self.leading, *(f"{i + 1},{j + 1}" for i in range(lines) for j in range(columns))]


Axis = TextAxis | ImageAxis


def _check_places(groups: Sequence[Sequence[int]], length: int, name: str, *, empty: bool = False) -> None:
    seen: set[int] = set()
    for group in groups:
        if not group and not empty:
            raise ValueError(f"{name} holds a group without pieces: {list(map(list, groups))!r:.80}.")
        for place in group:
            if not 0 <= place < length:
                raise ValueError(f"{name} names piece {place}, but there are {length} pieces (counted from 0).")
            if place in seen:
                raise ValueError(f"{name} names piece {place} twice.")
            seen.add(place)
