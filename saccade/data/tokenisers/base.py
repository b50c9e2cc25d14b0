"""What a tokeniser is."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from saccade.data.errors import DataError
from saccade.data.special import EOS, NAMES
from saccade.registry import Registry, constructor_parameters

FORMAT = "saccade.tokeniser"
VERSION = 1
T = TypeVar("T", bound="Tokeniser")


class Tokeniser:
    """Text to ids and back.

    What is decoded equals what was encoded, up to `normalise`, as long as every piece is in the vocabulary; what is
    not becomes `<unk>`. Equal training texts give equal ids in every run. A new tokeniser writes `fit`, `encode`,
    `join`, `touches` if words have several pieces, and `_state` / `_restore` for what it learned.

    Args:
        lowercase: whether upper case is folded to lower case.
    """

    kind: ClassVar[str]
    """The short name in the registry."""

    reserved: ClassVar[str] = ""
    """Characters with which it marks spaces; in texts they are replaced by underscores."""

    def __init__(self, *, lowercase: bool = False) -> None:
        self.lowercase = lowercase
        self._pieces: list[str] = []

    def fit(self: T, texts: Iterable[str]) -> T:
        """Learns the vocabulary; the texts are read once. Returns itself."""
        raise NotImplementedError

    def encode(self, text: str) -> list[int]:
        """The ids, without those of begin and end."""
        raise NotImplementedError

    def join(self, pieces: Iterable[str]) -> str:
        """The text that the pieces make."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """The number of ids, the four special ones included."""
        if not self._pieces:
            raise RuntimeError(f"This {type(self).__name__} has no vocabulary yet: call fit(texts) first.")
        return len(self._pieces)

    def decode(self, ids: Iterable[int]) -> str:
        """The text, up to the end-of-sentence id if there is one; padding and the begin id are left out."""
        return self.join(self.pieces(visible(ids)))

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """The vocabulary's entry for each id, as tables and pictures show it."""
        size = self.size
        found = list(ids)
        for token in found:
            if not 0 <= token < size:
                raise ValueError(f"Ids are between 0 and {size - 1}, got {token}.")
        return [self._pieces[token] for token in found]

    def words(self, text: str) -> list[list[int]]:
        """Which ids of `encode(text)` each word is made of, by their places; words stand between spaces.

        So there are as many as in `text.split()`, whatever is in the vocabulary.
        """
        return self.group(self.parts(text))

    def group(self, pieces: Sequence[str]) -> list[list[int]]:
        """Which pieces each word is made of, by their places, as the pieces themselves tell: special ones left out.

        Of a text that is known, `words` tells more surely: `<unk>` does not say whether it stands beside a space.
        """
        words: list[list[int]] = []
        before = " "
        for place, piece in enumerate(pieces):
            if not piece.isspace():
                if words and not before.isspace() and self.touches(before, piece):
                    words[-1].append(place)
                else:
                    words.append([place])
            before = piece
        return words

    def parts(self, text: str) -> list[str]:
        """The pieces of a text, those that are not in the vocabulary as they were written where that is known."""
        return self.pieces(self.encode(text))

    def touches(self, before: str, piece: str) -> bool:
        """Whether a piece belongs to the same word as the one before it; by default every piece is a word."""
        return False

    def normalise(self, text: str) -> str:
        """The text with single spaces, composed characters (NFC), without reserved characters, folded if asked."""
        text = unicodedata.normalize("NFC", text.lower() if self.lowercase else text)
        for mark in self.reserved:
            text = text.replace(mark, "_")
        return " ".join(text.split())

    def options(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {name: getattr(self, name) for name in constructor_parameters(type(self))}

    def dumps(self) -> str:
        """The tokeniser as JSON; equal tokenisers give equal text."""
        if not self._pieces:
            raise RuntimeError(f"This {type(self).__name__} has nothing to save yet: call fit(texts) first.")
        head = {"format": FORMAT, "version": VERSION, "kind": self.kind, "options": self.options()}
        return json.dumps(head | self._state(), ensure_ascii=False, indent=1) + "\n"

    def save(self, path: str | Path) -> None:
        """Writes one JSON file."""
        Path(path).write_text(self.dumps(), encoding="utf-8")

    @staticmethod
    def loads(text: str, name: str = "The text") -> Tokeniser:
        """The tokeniser that `dumps` wrote."""
        try:
            found = json.loads(text)
        except ValueError as error:
            raise DataError(f"{name} is not a tokeniser: {error}") from None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise DataError(f"{name} is not a tokeniser that Saccade saved.")
        if found["version"] > VERSION:
            raise DataError(f"{name} was saved by a newer Saccade (format {found['version']} > {VERSION}): upgrade.")
        tokeniser = tokenisers.create(found["kind"], **found["options"])
        tokeniser._restore(found)
        return tokeniser

    @staticmethod
    def load(path: str | Path) -> Tokeniser:
        """The tokeniser of any kind that `save` wrote."""
        return Tokeniser.loads(Path(path).read_text(encoding="utf-8"), str(path))

    def _state(self) -> dict[str, Any]:
        raise NotImplementedError

    def _restore(self, found: dict[str, Any]) -> None:
        raise NotImplementedError


tokenisers: Registry[Tokeniser] = Registry("tokeniser", base=Tokeniser, home="saccade.data.tokenisers")


def visible(ids: Iterable[int]) -> Iterator[int]:
    """The ids before the end that stand for text."""
    for token in ids:
        if token == EOS:
            return
        if token > EOS:
            yield token


def check_size(vocab_size: int | None, min_frequency: int) -> None:
    """Refuses limits that leave nothing."""
    if vocab_size is not None and vocab_size <= len(NAMES):
        raise ValueError(f"vocab_size counts the {len(NAMES)} special ids and must be more, got {vocab_size}.")
    if min_frequency < 1:
        raise ValueError(f"min_frequency is at least 1, got {min_frequency}.")


def most_frequent(counts: dict[str, int], vocab_size: int | None, min_frequency: int) -> Sequence[str]:
    """The pieces of a vocabulary, the frequent ones first and equally frequent ones in alphabetical order."""
    kept = sorted((piece for piece, count in counts.items() if count >= min_frequency), key=lambda p: (-counts[p], p))
    return kept if vocab_size is None else kept[: vocab_size - len(NAMES)]
