"""Texts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from saccade.checks import check_count
from saccade.data.cell import Cell, text_of
from saccade.data.errors import DataError
from saccade.data.special import EOS, NAMES, PAD, UNK
from saccade.data.tokenisers import Tokeniser, tokenisers
from saccade.data.tokenisers.subwords import SubwordTokeniser
from saccade.data.vectors import Vectors
from saccade.data.vectors import vectors as registered_vectors
from saccade.fields.base import Field, Padded, fields
from saccade.interpretation.explorer import TextAxis

FILE = "tokeniser.json"


@fields.register("text")
class Text(Field):
    """A text, read as the ids of its pieces and an end token.

    Args:
        tokeniser: char, word, bpe, unigram, tagged or pretokenised, with options if needed.
        max_length: training leaves out examples with more tokens.
        join: how several columns become one text, with `{}` for each: "{} <{}>" turns `run` and `V;PST` into
            `run <V;PST>`. By default they are joined by spaces.
        vectors: initial embeddings: "word2vec" learns them from the training texts first, and
            `{class: file, path: glove.txt}` reads them from a file. They are random by default.
    """

    holds = "text"
    blank = ""
    unit = "tokens"

    def __init__(
        self,
        *,
        tokeniser: Tokeniser | str = "bpe",
        max_length: int = 256,
        join: str | None = None,
        vectors: Vectors | str | None = None,
    ) -> None:
        check_count("max_length", max_length)
        self.vectors = registered_vectors.create(vectors) if isinstance(vectors, str) else vectors
        self.tokeniser = tokenisers.create(tokeniser) if isinstance(tokeniser, str) else tokeniser
        self.max_length = max_length
        self.join = join
        self.references = False
        """Whether several columns are several right answers instead of parts of one text."""
        self.fitted = False

    @property
    def longest(self) -> int:
        return self.max_length

    def check_columns(self, role: str, count: int) -> None:
        """Raises if `join` does not fit the number of columns that a role is read from."""
        places = 0 if self.join is None else self.join.count("{}")
        if self.join is not None and not self.references and places != count:
            raise DataError(
                f"join of the {role} is {self.join!r}, which has {places} place{'s' * (places != 1)} for {count} "
                "columns: write one {} for each column."
            )

    def read(self, raw: Any, cell: Cell) -> str | list[str]:
        if not isinstance(raw, list | tuple):
            return text_of(raw, cell)
        if not raw:
            raise cell.bad(f"the {cell.role} is an empty list", "Give at least one text.")
        texts = [text_of(each, cell) for each in raw]
        if self.references:
            return texts if len(texts) > 1 else texts[0]
        if self.join is None:
            return " ".join(texts)
        pieces = self.join.split("{}")  # not str.format, which would give a configuration too much power
        if len(pieces) != len(texts) + 1:
            problem = f"join={self.join!r:.60} joins {len(pieces) - 1} texts, got {len(texts)}"
            raise cell.bad(problem, "Write one {} for each.")
        return "".join(part for pair in zip(pieces, [*texts, ""], strict=True) for part in pair)

    def fit(self, values: Iterable[str | list[str]]) -> None:
        self.tokeniser.fit(text for value in values for text in texts_of(value))
        self.fitted = True

    def share(self, other: Field) -> None:
        if not isinstance(other, Text):
            raise ValueError(f"A text shares the vocabulary of another text, got {type(other).__name__}.")
        self.tokeniser, self.fitted = other.tokeniser, other.fitted

    def sizes(self) -> dict[str, int]:
        return {"vocab": self.tokeniser.size if self.fitted else 11}

    def save(self, folder: Path) -> None:
        self.tokeniser.save(folder / FILE)

    def load(self, folder: Path) -> None:
        self.tokeniser = Tokeniser.load(folder / FILE)
        self.fitted = True

    def vocabulary(self) -> list[str]:
        pieces = self.tokeniser.pieces(range(self.tokeniser.size))
        return ["" if place < len(NAMES) else self.tokeniser.shown(piece) for place, piece in enumerate(pieces)]

    def encode(self, value: str | list[str]) -> list[int]:
        return [*self.tokeniser.encode(texts_of(value)[0]), EOS]

    def left_out(self, encoded: Sequence[int]) -> str | None:
        return f"longer than max_length={self.max_length} tokens" if len(encoded) - 1 > self.max_length else None

    def clip(self, encoded: list[int], most: int) -> list[int]:
        return encoded if len(encoded) - 1 <= most else [*encoded[:most], EOS]

    def pad(self, encoded: Sequence[Sequence[int]], generator: torch.Generator | None = None) -> Padded:
        ids = pad_sequence([torch.tensor(each) for each in encoded], batch_first=True, padding_value=PAD).long()
        return {"values": ids, "mask": ids != PAD}

    def axis(self, value: str | list[str], length: int | None = None) -> TextAxis:
        """The pieces of the text and its end; the first pieces of a text that was cut to a length."""
        text = texts_of(value)[0]
        pieces = [*map(self.tokeniser.shown, self.tokeniser.parts(text)), NAMES[EOS]]
        words = [word for word in self.words(value, length) if word]
        if length is not None and length < len(pieces):
            pieces = [*pieces[: length - 1], NAMES[EOS]]
        return TextAxis(pieces=pieces, words=words if len(words) > 1 else None, special=[len(pieces) - 1])

    def word_starts(self, value: str | list[str]) -> list[int]:
        """The position of the first piece of each word, as many as `text.split()` has."""
        return [word[0] for word in self.words(value)]

    def words(self, value: str | list[str], length: int | None = None) -> list[list[int]]:
        words = self.tokeniser.words(texts_of(value)[0])
        return words if length is None else [word if word[-1] < length - 1 else [] for word in words]  # then the end

    def show(self, value: str | list[str]) -> str:
        return texts_of(value)[0]

    def portable(self) -> dict[str, Any]:
        return {"kind": "text", "tokeniser": json.loads(self.tokeniser.dumps())}

    def stand_ins(self, count: int, length: int) -> Padded:
        size = self.tokeniser.size
        ids = [len(NAMES) % size + number % max(1, size - len(NAMES)) for number in range(length)]
        return self.pad([[*ids[: length - 1 - min(number, 2)], EOS] for number in range(count)])

    def learned(self) -> str:
        return f"{self.tokeniser.size:,} pieces ({self.tokeniser.kind})"

    def warnings(self, examples: int) -> list[str]:
        if self.tokeniser.size <= len(NAMES):
            return [
                "the vocabulary has no words, only special tokens: none occurs often enough. Is that the right column?"
            ]
        asked = self.tokeniser.vocab_size if isinstance(self.tokeniser, SubwordTokeniser) else 0
        if self.tokeniser.size < 0.95 * asked:
            return [
                f"the data yields {self.tokeniser.size:,} pieces, not vocab_size={asked:,}: nearly every word that "
                "occurs twice is a piece of its own. Try a smaller vocab_size, to learn rare words from their parts."
            ]
        if asked > 2 * examples:
            return [
                f"vocab_size={asked:,} is large for {examples:,} examples: many pieces occur only a few times. Try a "
                "smaller one."
            ]
        return []

    def unknown(self, value: str | list[str]) -> list[str]:
        text = texts_of(value)[0]
        ids = self.tokeniser.encode(text)
        strange = [piece for piece, token in zip(self.tokeniser.parts(text), ids, strict=True) if token == UNK]
        if NAMES[UNK] not in strange:
            return [self.tokeniser.shown(piece) for piece in strange]
        letters = dict.fromkeys(letter for letter in self.tokeniser.normalise(text) if not letter.isspace())
        return [letter for letter in letters if UNK in self.tokeniser.encode(letter)] or strange


def texts_of(value: str | Sequence[str]) -> list[str]:
    """One text, or several right answers, as a list."""
    return [value] if isinstance(value, str) else list(value)
