"""One text, or a pair of texts, as BERT reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from saccade.data.cell import Cell, text_of
from saccade.data.tokenisers.bert_folder import read_wordpiece
from saccade.data.tokenisers.wordpiece import SPECIAL, WordPiece
from saccade.fields.base import Field, Padded, fields
from saccade.fields.looking import Look
from saccade.fields.text import texts_of
from saccade.interpretation.explorer import TextAxis
from saccade.interpretation.recording import Trace

FILE = "wordpieces.json"
PAD, UNK, CLS, SEP, MASK = SPECIAL

EncodedPieces = dict[str, Any]
"""`ids`, how many of them belong to the first text (`first`), and how many were left out (`unread`)."""


@fields.register("wordpieces")
class WordPieces(Field):
    """One text or a pair of texts in WordPiece: `[CLS] text [SEP]`, or `[CLS] one [SEP] other [SEP]`.

    A pair comes from two columns: `--data.columns '{text: [premise, hypothesis], label: label}'`. The vocabulary is
    learned from the training texts, unless training starts from another model, whose vocabulary it then takes.

    Args:
        vocab_size: the maximum size of the vocabulary, including the special tokens.
        lowercase: whether to fold upper case to lower case, and to remove accents.
        max_length: the maximum number of tokens, including the special ones. Longer texts are truncated; in a pair,
            the longer text first.
        cut: where long texts are truncated: at the end, in the middle (a quarter of what is kept comes from the
            beginning), or at the start.

    Reference:
        Devlin et al. (2019), arXiv:1810.04805, section 3; the middle: Sun et al. (2019), arXiv:1905.05583, section 5.3.
    """

    holds = "text"
    blank = ""
    unit = "tokens"

    def __init__(
        self,
        *,
        vocab_size: int = 30_000,
        lowercase: bool = True,
        max_length: int = 128,
        cut: Literal["end", "middle", "start"] = "end",
    ) -> None:
        if max_length < 5:
            raise ValueError(f"max_length must leave room for a pair of texts, 5 or more, got {max_length}.")
        if cut not in ("end", "middle", "start"):
            raise ValueError(f"cut must be 'end', 'middle' or 'start', got {cut!r}.")
        self.tokeniser = WordPiece(vocab_size=vocab_size, lowercase=lowercase)
        self.max_length = max_length
        self.cut = cut
        self.adopted = False
        self.paragraphs = False
        self.pairs = True
        """Whether two columns are two texts; otherwise they are the words of one."""

    @property
    def longest(self) -> int:
        return self.max_length

    def read(self, raw: Any, cell: Cell) -> str | list[str]:
        if not isinstance(raw, list | tuple):
            return text_of(raw, cell)
        texts = [text_of(each, cell) for each in raw]
        if not self.pairs and texts:
            return " ".join(texts)
        if not 1 <= len(texts) <= 2:
            raise cell.bad(f"the {cell.role} has {len(texts)} parts", "Give one text or two.")
        return texts if len(texts) == 2 else texts[0]

    def fit(self, values: Iterable[str | list[str]]) -> None:
        if not self.adopted:
            self.tokeniser.fit(text for value in values for text in texts_of(value))

    def adopt(self, folder: Path) -> bool:
        if (folder / FILE).is_file():
            self.load(folder)
        elif (folder / "config.json").is_file():
            self.tokeniser = read_wordpiece(folder)
        else:
            return False
        self.adopted = True
        return True

    def sizes(self) -> dict[str, int]:
        return {"vocab": self.tokeniser.size if self.tokeniser.vocabulary else 11}

    def save(self, folder: Path) -> None:
        self.tokeniser.save(folder / FILE)

    def load(self, folder: Path) -> None:
        self.tokeniser = WordPiece.load(folder / FILE)

    def encode(self, value: str | list[str]) -> EncodedPieces:
        return self.assemble(*self.tokeniser.encode_all(texts_of(value)))

    def assemble(self, *texts: list[int]) -> EncodedPieces:
        """The ids of one text or two with the special tokens, cut to `max_length`."""
        cls, sep = (self.tokeniser.special(name) for name in (CLS, SEP))
        kept = lengths_kept([len(ids) for ids in texts], self.max_length - 1 - len(texts))
        first, *others = (self._cut(ids, most) for ids, most in zip(texts, kept, strict=True))
        start = [cls, *first, sep]
        ids = start + [token for ids in others for token in (*ids, sep)]
        return {"ids": ids, "first": len(start), "unread": sum(map(len, texts)) - sum(kept)}

    def _cut(self, ids: list[Any], most: int) -> list[Any]:
        """The part of a text that is read; also of other lists with an item for each piece."""
        head = {"end": most, "middle": most // 4, "start": 0}[self.cut]
        return ids if len(ids) <= most else ids[:head] + ids[len(ids) - (most - head) :]

    def size(self, encoded: EncodedPieces) -> int:
        return len(encoded["ids"])

    def truncated(self, encoded: EncodedPieces) -> str | None:
        return f"more than max_length={self.max_length} tokens" if encoded["unread"] else None

    def pad(self, encoded: Sequence[EncodedPieces], generator: torch.Generator | None = None) -> Padded:
        ids = [torch.tensor(each["ids"]) for each in encoded]
        lengths = torch.tensor([len(each) for each in ids])
        first = torch.tensor([each["first"] for each in encoded])
        values = pad_sequence(ids, batch_first=True, padding_value=self.tokeniser.special(PAD)).long()
        places = torch.arange(values.shape[1])
        mask = places < lengths.unsqueeze(1)
        return {"values": values, "mask": mask, "segments": (mask & (places >= first.unsqueeze(1))).long()}

    def places(self, value: str | list[str]) -> dict[int, tuple[int, int]]:
        """Where each token that is read of the last text stands in it, in characters."""
        *_, (start, pieces) = self._read(value)
        return {start + number: span for number, (_, span) in enumerate(pieces)}

    def word_starts(self, value: str | list[str]) -> list[int]:
        """The position of the first piece of each word that is read, in a text of which no start or middle is cut.

        A word that has no piece, such as a control character, has that of the token before it.
        """
        (_, pieces), *_ = self._read(value)
        starts, place = [], 0
        whole = len(pieces) == len(self.tokeniser.encode(texts_of(value)[0]))
        for word in re.finditer(r"\S+", texts_of(value)[0]):
            while place < len(pieces) and pieces[place][1][1] <= word.start():
                place += 1
            if place == len(pieces) and not whole:
                break
            own = place < len(pieces) and pieces[place][1][0] < word.end()
            starts.append(1 + place - (not own))
        return starts

    def _read(self, value: str | list[str]) -> list[tuple[int, list[tuple[int, tuple[int, int]]]]]:
        """For each text the place of its first token, and its tokens that are read with where they stand in it."""
        split = [self.tokeniser.split(text) for text in texts_of(value)]
        kept = lengths_kept([len(each.ids) for each in split], self.max_length - 1 - len(split))
        parts = [self._cut(list(zip(*each, strict=True)), most) for each, most in zip(split, kept, strict=True)]
        starts = [1, *(1 + len(part) + 1 for part in parts[:-1])]
        return list(zip(starts, parts, strict=True))

    def words(self, value: str | list[str], length: int | None = None) -> list[list[int]]:
        texts = texts_of(value)
        found: list[list[int]] = [[] for text in texts for _ in text.split()]
        before = 0
        for text, (first, part) in zip(texts, self._read(value), strict=True):
            for place, (_, (start, _)) in enumerate(part, start=first):
                found[before + len(text[: start + 1].split()) - 1].append(place)
            before += len(text.split())
        return found if len(texts) == 1 else []  # of a pair, `show` holds a sign of its own

    def axis(self, value: str | list[str], length: int | None = None) -> TextAxis:
        pieces, words, special = [CLS], list[list[int]](), [0]
        for text, (_, part) in zip(texts_of(value), self._read(value), strict=True):
            word = -1
            for token, (start, _) in part:
                before, word = word, len(text[:start].split()) - (start > 0 and not text[start - 1].isspace())
                if word != before:
                    words.append([])
                words[-1].append(len(pieces))
                pieces.append(self.tokeniser.vocabulary[token])
            special.append(len(pieces))
            pieces.append(SEP)
        return TextAxis(pieces=pieces, words=words if len(words) > 1 else None, special=special)

    def look(self, trace: Trace, count: int, mask: Tensor | None = None) -> Look | None:
        """As for other fields; for a model without pooling by attention, what `[CLS]` looked at in the last layer."""
        looks = [call.path for call in trace.calls if call.shape[0] == count and call.shape[2] > 1]
        return super().look(trace, count, mask) or (Look(looks[-1], query=0) if looks else None)

    def portable(self) -> dict[str, Any]:
        saved = json.loads(self.tokeniser.dumps())
        about = {"max_length": self.max_length, "cut": self.cut, "pairs": self.pairs}
        return {"kind": "wordpieces", "tokeniser": saved, **about}

    def stand_ins(self, count: int, length: int) -> Padded:
        size = self.tokeniser.size
        lengths = [length - min(number, 2) - 3 for number in range(count)]
        words = [[place % size for place in range(most)] for most in lengths]
        return self.pad([self.assemble(ids[: len(ids) // 2], ids[len(ids) // 2 :]) for ids in words])

    def show(self, value: str | list[str]) -> str:
        return " | ".join(texts_of(value))

    def learned(self) -> str:
        whence = ", of the model that training starts from" if self.adopted else ""
        return f"{self.tokeniser.size:,} pieces (wordpiece{whence})"

    def unknown(self, value: str | list[str]) -> list[str]:
        unknown = self.tokeniser.special(UNK)
        return [
            text[start:end]
            for text in texts_of(value)
            for token, (start, end) in zip(*self.tokeniser.split(text), strict=True)
            if token == unknown
        ]


def lengths_kept(lengths: Sequence[int], most: int) -> list[int]:
    """How many tokens of one or two texts are read if there is room for `most`: the longer one is cut first."""
    if sum(lengths) <= most:
        return list(lengths)
    if len(lengths) == 1:
        return [most]
    one, other = lengths
    if one <= most // 2:
        return [one, most - one]
    if other <= most // 2:
        return [most - other, other]
    return [most - most // 2, most // 2]
