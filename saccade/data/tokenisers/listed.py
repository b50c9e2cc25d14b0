"""Tokenisers whose vocabulary is a list: characters, words, and words that are already split."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import Any, ClassVar, TypeVar

from saccade.data.special import NAMES, UNK
from saccade.data.tokenisers.base import Tokeniser, check_size, most_frequent, tokenisers

T = TypeVar("T", bound="ListTokeniser")


class ListTokeniser(Tokeniser):
    """A vocabulary of the most frequent pieces; a new one writes `split` and `join`.

    Args:
        vocab_size: how many ids there may be, the four special ones included; as many as there are pieces by default.
        min_frequency: how often a piece must occur to get an id.
        lowercase: whether upper case is folded to lower case.
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
        # The special names are no entries: "<s>" in a text is text.
        self._ids = {piece: number for number, piece in enumerate(learned, start=len(NAMES))} or {"": UNK}

    def _state(self) -> dict[str, Any]:
        return {"vocabulary": self._pieces[len(NAMES) :]}

    def _restore(self, found: dict[str, Any]) -> None:
        self._set(found["vocabulary"])


@tokenisers.register("char")
class CharTokeniser(ListTokeniser):
    """Every character is a piece, the space too."""

    kind = "char"

    def split(self, text: str) -> list[str]:
        return list(text)

    def join(self, pieces: Iterable[str]) -> str:
        return "".join(pieces)

    def touches(self, before: str, piece: str) -> bool:
        return True  # but for spaces, which are in no word


@tokenisers.register("pretokenised")
class PretokenisedTokeniser(ListTokeniser):
    """Pieces stand between spaces, as another program left them."""

    kind = "pretokenised"

    def split(self, text: str) -> list[str]:
        return text.split()

    def join(self, pieces: Iterable[str]) -> str:
        return " ".join(pieces)


@tokenisers.register("word")
class WordTokeniser(ListTokeniser):
    """Words and signs of punctuation are pieces, and a mark keeps which of them touch.

    `Hello, (world)!` becomes `Hello ￭, (￭ world ￭) ￭!`: the mark on the side of a sign says that there is no space.
    Words never carry it, so that a word has one entry wherever it stands.
    """

    kind = "word"
    reserved: ClassVar[str] = "￭"

    def split(self, text: str) -> list[str]:
        return NEITHER_WORD_NOR_SPACE.sub(detach, text).split()

    def join(self, pieces: Iterable[str]) -> str:
        text = " ".join(pieces)
        return text.replace(f" {self.reserved}", "").replace(f"{self.reserved} ", "").replace(self.reserved, "")

    def touches(self, before: str, piece: str) -> bool:
        return before.endswith(self.reserved) or piece.startswith(self.reserved)


NEITHER_WORD_NOR_SPACE = re.compile(r"[^\w\s]")


def detach(match: re.Match[str]) -> str:
    """The sign set off by spaces, with a mark wherever a space was not there before."""
    sign, text, mark = match[0], match.string, WordTokeniser.reserved
    if not is_sign(sign):
        return sign
    before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
    touches_left = match.start() > 0 and before != " "
    touches_right = after not in ("", " ") and not is_sign(after)  # the next sign has a mark of its own
    return (f" {mark}" if touches_left else "") + sign + (f"{mark} " if touches_right else "")


def is_sign(character: str) -> bool:
    """Punctuation or a symbol; accents, vowel signs and joiners belong to their word, as does the underscore."""
    return character != "_" and unicodedata.category(character)[0] in "PS"
