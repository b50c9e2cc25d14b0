"""The data of language modelling: texts, and what a model has to predict in them."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Self

import torch
from torch import Tensor

from saccade.artifacts import write_file
from saccade.data.contiguous import Pieces
from saccade.data.special import BOS, EOS
from saccade.fields import Text
from saccade.fields.wordpieces import MASK
from saccade.tasks.base import Example, Row, Task
from saccade.tasks.masking import mask_at_random, mask_every
from saccade.tasks.scored_texts import read_counts

LEAST_PIECES = 8
"""The minimum number of pieces in a stream of contiguous texts, since every stream begins without a past."""

COUNTS = "counts.json"
"""The file in the task's folder that says how often each token occurs in the training data."""


class Question(NamedTuple):
    """What a model is asked about a batch of texts: `targets` at the places where `asked` is True; (batch, length)."""

    given: Tensor
    mask: Tensor
    asked: Tensor
    targets: Tensor


class TextData(Task):
    """A task that reads texts, cut into pieces, in order or independently, with or without masks."""

    text: Text
    causal: bool
    contiguous: bool
    mask_share: float

    counts: list[int]
    """How often each token occurs in the training data; empty if unknown."""

    @property
    def every(self) -> int:
        """How many questions it takes to ask for all tokens: each masks one token in this many."""
        return max(2, round(1.0 / self.mask_share))

    @property
    def mask_id(self) -> int:
        """The id after those of the vocabulary."""
        return self.text.sizes()["vocab"]

    def encode(self, example: Example) -> Row:
        return {"text": [BOS, *self._ids(example["text"]), EOS]}

    def _ids(self, text: str) -> list[int]:
        """The tokens of a text, with masks for its blanks if the model fills them in."""
        first, *others = (self.text.tokeniser.encode(part) for part in self._between_blanks(text))
        return [*first, *(token for part in others for token in (self.mask_id, *part))]

    def _between_blanks(self, text: str) -> list[str]:
        """The parts of a text between its blanks."""
        return [text] if self.causal else text.split(MASK)

    def fit(self, examples: Iterable[Example]) -> None:
        super().fit(examples)
        counts = Counter(token for example in examples for token in self.encode(example)["text"][1:])
        self.counts = [counts[token] for token in range(self.mask_id)]

    def save(self, folder: Path) -> None:
        super().save(folder)
        write_file(folder / COUNTS, json.dumps(self.counts) + "\n")

    def load(self, folder: Path) -> None:
        super().load(folder)
        self.counts = read_counts(folder / COUNTS, self.mask_id) if (folder / COUNTS).exists() else []

    def apart(self) -> Self:
        """The same task for unrelated texts."""
        found = copy.copy(self)
        found.contiguous = False
        return found

    def in_order(self, rows: Sequence[Row], budget: int) -> Sequence[Row]:
        if not self.contiguous:
            return rows
        length = self.text.max_length
        most = sum(len(row["text"]) for row in rows) // (LEAST_PIECES * length)
        return Pieces(rows, begin=BOS, streams=min(budget // length, max(1, most)), length=length)

    def rows(self, example: Example) -> list[Row]:
        ids, most = self.encode(example)["text"], self.text.max_length
        if self.contiguous:
            return [{"text": ids[1:]}]
        return [{"text": ids[start : start + most + 1]} for start in range(0, len(ids) - 1, most)]

    def left_out(self, row: Row) -> str | None:
        return None

    def collate(self, rows: Sequence[Row], *, generator: torch.Generator | None = None) -> dict[str, Tensor]:
        batch = super().collate(rows, generator=generator)
        if not self.causal:
            ids, real = batch["text"], batch["text_mask"]
            if generator is None:  # the same for every validation
                first = (real.sum(1, keepdim=True) - 2).clamp(1, self.every // 2)
                masked = mask_every(ids, real, every=self.every, first=first, mask_id=self.mask_id)
            else:
                masked = mask_at_random(ids, real, share=self.mask_share, mask_id=self.mask_id, generator=generator)
            batch |= masked._asdict()
        return batch

    def _question(self, batch: dict[str, Tensor]) -> Question:
        """What a model is asked in training and validation."""
        ids, real = batch["text"], batch["text_mask"]
        if self.causal:
            return Question(ids[:, :-1], real[:, :-1], real[:, 1:], ids[:, 1:])
        return Question(batch["given"], real, batch["hidden"], ids)

    def _questions(self, batch: dict[str, Tensor]) -> Iterator[Question]:
        """Together they ask for every token once."""
        if self.causal:
            yield self._question(batch)
            return
        for first in range(1, self.every + 1):
            ids, real = batch["text"], batch["text_mask"]
            masked = mask_every(ids, real, every=self.every, first=first, mask_id=self.mask_id)
            yield self._question({**batch, **masked._asdict()})
