"""Documents: texts as sentences of words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from saccade.checks import check_count
from saccade.data.cell import SKIP, Cell, text_of
from saccade.data.sentences import split_sentences
from saccade.data.tokenisers import Tokeniser
from saccade.data.vectors import Vectors
from saccade.fields.base import Field, Padded, fields
from saccade.fields.document_looks import DocumentLook, Level, levels, product
from saccade.fields.looking import Look, Seen
from saccade.fields.text import Text
from saccade.interpretation.explorer import Map, TextAxis
from saccade.interpretation.recording import Trace
from saccade.registry import nearest

WAYS = ("split", "lines", "given")

WHOLE = "document"
"""The name of the map with the weights of words in the whole document."""


@fields.register("document")
class Document(Field):
    """A text as sentences, each read as the ids of its pieces: reviews, articles, letters.

    Args:
        tokeniser: word, char, bpe, unigram, tagged or pretokenised, with options if needed.
        sentences: "split" splits each text into sentences; "lines" takes each line as one; "given" takes a list of
            sentences (from JSON lines, Parquet or memory) as it is. Several columns are concatenated.
        language: of the texts to split, as an ISO 639 code: en, de, ja, ...
        max_sentences: the maximum number of sentences that are read; the rest is cut off.
        max_words: the maximum number of pieces of a sentence that are read; the rest is cut off.
        vectors: initial embeddings, as for a text: "word2vec", or `{class: file, path: glove.txt}`.
    """

    blank: Any = ()
    holds = "text"
    unit = "tokens"

    def __init__(
        self,
        *,
        tokeniser: Tokeniser | str = "word",
        sentences: Literal["split", "lines", "given"] = "split",
        language: str = "en",
        max_sentences: int = 200,
        max_words: int = 100,
        vectors: Vectors | str | None = None,
    ) -> None:
        check_count("max_sentences", max_sentences)
        check_count("max_words", max_words)
        if sentences not in WAYS:
            raise ValueError(f"Unknown sentences {sentences!r}.{nearest(sentences, WAYS)}")
        if not re.fullmatch(r"[a-z]{2,3}([-_]\w+)*", language):
            raise ValueError(f"language must be an ISO 639 code such as en, got {language!r}.")
        self.text = Text(tokeniser=tokeniser, vectors=vectors)
        self.vectors = self.text.vectors
        self.sentences = sentences
        self.language = language
        self.max_sentences = max_sentences
        self.max_words = max_words

    def read(self, raw: Any, cell: Cell) -> list[str]:
        several = isinstance(raw, list | tuple)
        if self.sentences == "given" and not several:
            fix = "Give a list, or split texts with sentences=split or lines."
            raise cell.bad(f"the {cell.role} is not a list of sentences, as sentences=given requires", fix)
        texts = [text_of(each, cell, may_be_empty=several) for each in (raw if several else [raw])]
        if self.sentences == "given":
            found = texts
        elif self.sentences == "lines":
            found = [line for text in texts for line in text.splitlines() if line.strip()]
        else:
            found = [sentence for text in texts for sentence in split_sentences(text, self.language)]
        if not any(sentence.strip() for sentence in found):
            raise cell.bad(f"the {cell.role} is empty", f"{SKIP}.")
        return found

    def fit(self, values: Iterable[Sequence[str]]) -> None:
        self.text.fit(sentence for value in values for sentence in value)

    def sizes(self) -> dict[str, int]:
        return self.text.sizes()

    def save(self, folder: Path) -> None:
        self.text.save(folder)

    def load(self, folder: Path) -> None:
        self.text.load(folder)

    def vocabulary(self) -> list[str]:
        return self.text.vocabulary()

    def texts(self, encoded: Sequence[Sequence[int]]) -> Iterable[Sequence[int]]:
        return encoded

    def encode(self, value: Sequence[str]) -> list[list[int]]:
        return [self.text.tokeniser.encode(sentence) for sentence in value]

    def size(self, encoded: Sequence[Sequence[int]]) -> int:
        return max(1, sum(map(len, self._read_of(encoded))))

    def truncated(self, encoded: Sequence[Sequence[int]]) -> str | None:
        reasons = []
        if len(encoded) > self.max_sentences:
            reasons.append(f"more than max_sentences={self.max_sentences} sentences")
        if any(len(sentence) > self.max_words for sentence in encoded[: self.max_sentences]):
            reasons.append(f"sentences of more than max_words={self.max_words} tokens")
        return " and ".join(reasons) or None

    def pad(self, encoded: Sequence[Sequence[Sequence[int]]], generator: torch.Generator | None = None) -> Padded:
        read = [self._read_of(document) for document in encoded]
        lengths = torch.zeros(len(read), max(1, *map(len, read)), dtype=torch.long)
        lengths[torch.arange(lengths.shape[1]) < torch.tensor([[len(document)] for document in read])] = torch.tensor(
            [len(sentence) for document in read for sentence in document], dtype=torch.long
        )
        mask = torch.arange(max(1, int(lengths.max()))) < lengths.unsqueeze(-1)
        ids = torch.zeros(mask.shape, dtype=torch.long)  # PAD is 0
        ids[mask] = torch.tensor(list(chain.from_iterable(chain.from_iterable(read))), dtype=torch.long)
        return {"values": ids, "mask": mask}

    def _read_of(self, encoded: Sequence[Sequence[int]]) -> list[Sequence[int]]:
        """The part of a document that a model reads."""
        return [sentence[: self.max_words] for sentence in encoded[: self.max_sentences]]

    def axis(self, value: Sequence[str], length: int | None = None) -> TextAxis:
        """The words that a model reads; empty sentences are not shown."""
        tokeniser = self.text.tokeniser
        pieces: list[str] = []
        words: list[list[int]] = []
        groups: list[range] = []
        for sentence in value[: self.max_sentences]:
            start = len(pieces)
            pieces += [tokeniser.shown(part) for part in tokeniser.parts(sentence)[: self.max_words]]
            shown = ([start + place for place in word if place < self.max_words] for word in tokeniser.words(sentence))
            words += [word for word in shown if word]
            if len(pieces) > start:
                groups.append(range(start, len(pieces)))
        return TextAxis(pieces=pieces, words=words if len(words) > 1 else None, sentences=groups)

    def words(self, value: Sequence[str], length: int | None = None) -> list[list[int]]:
        found: list[list[int]] = []
        start = 0
        for number, sentence in enumerate(value):
            read = self.max_words if number < self.max_sentences else 0
            own = self.text.tokeniser.words(sentence)
            found += [[start + place for place in word if place < read] for word in own]
            start += min(read, len(self.text.tokeniser.encode(sentence)))
        return found

    def maps(self, value: Sequence[str], trace: Trace, answer: str, length: int | None = None) -> list[Map]:
        """The attention to sentences, to words within each sentence, and to words in the document.

        The weight of a word in the document is its weight in its sentence times that of the sentence.
        """
        axis, answers = self.axis(value), TextAxis(pieces=[answer])
        if not axis.pieces:
            return []
        words, sentences = self._levels([value], trace)
        spoken = TextAxis(pieces=self._spoken(value))
        shown = [(level.path, level.weights[0], spoken) for level in sentences]
        shown += [(level.path, level.weights[0], axis) for level in words]
        if words and sentences:
            shown.append((WHOLE, product(axis, words[-1].weights[0], sentences[-1].weights[0]), axis))
        return [Map(name=name, weights=found.unsqueeze(1), queries=answers, keys=keys) for name, found, keys in shown]

    def attended(self, values: Sequence[Sequence[str]], trace: Trace, mask: Tensor | None = None) -> list[Seen]:
        """The weights of words in their document; those of sentences if the model looks at sentences alone."""
        words, sentences = self._levels(values, trace)
        found = []
        for number, value in enumerate(values):
            if words:
                axis, weights = self.axis(value), words[-1].weights[number]
                whole = product(axis, weights, sentences[-1].weights[number]) if sentences else weights
                found.append(Seen(axis.names, whole.mean(0)))
            elif sentences:
                found.append(Seen(self._spoken(value), sentences[-1].weights[number].mean(0)))
        return found

    def look(self, trace: Trace, count: int, mask: Tensor | None = None) -> Look | None:
        assert mask is not None
        words, sentences = levels(mask, trace)
        if not words and not sentences:
            return None
        above = sentences[-1].path if words and sentences else None
        return DocumentLook((words or sentences)[-1].path, sentences=above, of_words=bool(words))

    def portable(self) -> dict[str, Any]:
        names = ("sentences", "language", "max_sentences", "max_words")
        about = {name: getattr(self, name) for name in names}
        return {"kind": "document", "tokeniser": self.text.portable()["tokeniser"], **about}

    def stand_ins(self, count: int, length: int) -> Padded:
        size = self.text.tokeniser.size
        words = [[place % size for place in range(length - number)] for number in range(length // 2)]
        return self.pad([words[: len(words) - min(number, 1)] for number in range(count)])

    def _levels(self, values: Sequence[Sequence[str]], trace: Trace) -> tuple[list[Level], list[Level]]:
        return levels(self.pad([self.encode(value) for value in values])["mask"], trace)

    def _spoken(self, value: Sequence[str]) -> list[str]:
        """The sentences that a model reads."""
        return [sentence for sentence in value[: self.max_sentences] if self.text.tokeniser.encode(sentence)]

    def show(self, value: Sequence[str]) -> str:
        return " ".join(" ".join(value).split())

    def learned(self) -> str:
        return self.text.learned()

    def warnings(self, examples: int) -> list[str]:
        return self.text.warnings(examples)

    def unknown(self, value: Sequence[str]) -> list[str]:
        return [part for sentence in value for part in self.text.unknown(sentence)]
