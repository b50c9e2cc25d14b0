"""Tokenisers with a list of pieces as their vocabulary: characters, words, and words that are already split."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import Any, ClassVar, TypeVar

from saccade.artifacts import JsonObject
from saccade.data.special import NAMES, UNK
from saccade.data.tokenisers.base import Tokeniser, check_size, most_frequent, read_vocabulary, tokenisers

T = TypeVar("T", bound="ListTokeniser")


class ListTokeniser(Tokeniser):
    """A tokeniser with the most frequent pieces as its vocabulary; a new one implements `split` and `join`.

    Args:
        vocab_size: the largest number of ids, including the four special ones; by default every piece gets one.
        min_frequency: the number of times a piece must occur to get an id.
        lowercase: whether to fold upper case to lower case.
    """

    def __init__(self, *, vocab_size: int | None = None, min_frequency: int = 1, lowercase: bool = False) -> None:
        super().__init__(lowercase=lowercase)
        check_size(vocab_size, min_frequency)
        self.vocab_size, self.min_frequency = vocab_size, min_frequency
        self._ids: dict[str, int] = {}

    def split(self, text: str) -> list[str]:
        """The pieces of a normalised text."""
        raise NotImplementedError

    def fit(self: T, texts: Iterable[str]) -> T:
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(self.split(self.normalise(text)))
        self._set(most_frequent(counts, self.vocab_size, self.min_frequency))
        return self

    def encode(self, text: str) -> list[int]:
        if not self._ids:
            raise RuntimeError(f"This {type(self).__name__} has no vocabulary yet: call fit(texts) first.")
        get = self._ids.get
        return [get(piece, UNK) for piece in self.parts(text)]

    def parts(self, text: str) -> list[str]:
        return self.split(self.normalise(text))

    def _set(self, pieces: Iterable[str]) -> None:
        learned = list(pieces)
        self._pieces = [*NAMES, *learned]
        # The special names are not entries: "<s>" in a text is text.
        self._ids = {piece: number for number, piece in enumerate(learned, start=len(NAMES))} or {"": UNK}

    def _state(self) -> dict[str, Any]:
        return {"vocabulary": self._pieces[len(NAMES) :]}

    def _restore(self, found: JsonObject) -> None:
        self._set(read_vocabulary(found))


@tokenisers.register("char")
class CharTokeniser(ListTokeniser):
    """Every character is a piece, spaces included."""

    kind = "char"

    def split(self, text: str) -> list[str]:
        return list(text)

    def join(self, pieces: Iterable[str]) -> str:
        return "".join(pieces)

    def touches(self, before: str, piece: str) -> bool:
        return True  # spaces, which belong to no word, are handled by `group`


@tokenisers.register("pretokenised")
class PretokenisedTokeniser(ListTokeniser):
    """Pieces are separated by spaces, as produced by another program."""

    kind = "pretokenised"

    def split(self, text: str) -> list[str]:
        return text.split()

    def join(self, pieces: Iterable[str]) -> str:
        return " ".join(pieces)


@tokenisers.register("word")
class WordTokeniser(ListTokeniser):
    """Words and punctuation marks are pieces, and a joiner records which of them touch.

    `Hello, (world)!` becomes `Hello ￭, (￭ world ￭) ￭!`: the joiner on one side of a sign means that there is no space.
    Words never carry it, so a word has the same entry wherever it occurs.
    """

    kind = "word"
    reserved: ClassVar[str] = "￭"

    def split(self, text: str) -> list[str]:
        return NEITHER_WORD_NOR_SPACE.sub(detach, text).split()

    def join(self, pieces: Iterable[str]) -> str:
        text = " ".join(pieces)
        return text.replace(f" {self.reserved}", "").replace(f"{self.reserved} ", "").replace(self.reserved, "")

    def shown(self, piece: str) -> str:
        return piece.replace(self.reserved, "") or piece

    def touches(self, before: str, piece: str) -> bool:
        return before.endswith(self.reserved) or piece.startswith(self.reserved)


NEITHER_WORD_NOR_SPACE = re.compile(r"[^\w\s]")


def detach(match: re.Match[str]) -> str:
    """The sign surrounded by spaces, with a joiner on each side that had none before."""
    sign, text, mark = match[0], match.string, WordTokeniser.reserved
    if not is_sign(sign):
        return sign
    before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
    touches_left = match.start() > 0 and before != " "
    touches_right = after not in ("", " ") and not is_sign(after)  # the next sign has a joiner of its own
    return (f" {mark}" if touches_left else "") + sign + (f"{mark} " if touches_right else "")


def is_sign(character: str) -> bool:
    """Whether this is punctuation or a symbol; accents, vowel signs, joiners and underscores belong to their word."""
    return character != "_" and unicodedata.category(character)[0] in "PS"
