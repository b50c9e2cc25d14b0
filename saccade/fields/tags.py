"""Tags: a label for each word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from saccade.data.cell import Cell, text_of
from saccade.fields.base import Padded, fields
from saccade.fields.label import Label


@fields.register("tags")
class Tags(Label):
    """A class for each word of a text, such as its part of speech: a list, or names separated by spaces.

    There must be one for each word of the text; words are separated by spaces too.

    Args:
        names: the classes; by default those of the training data.
    """

    holds = ""

    def __init__(self, *, names: list[str] | None = None) -> None:
        super().__init__(names=names)

    def read(self, raw: Any, cell: Cell) -> list[str]:  # type: ignore[override] # a tag for each word is its value
        parts = raw if isinstance(raw, list | tuple) else text_of(raw, cell).split()
        return [super(Tags, self).read(part, cell) for part in parts]

    def fit(self, values: Iterable[list[str]]) -> None:  # type: ignore[override]
        self._learn(Counter(name for tags in values for name in tags))

    def strata(self, value: Sequence[str]) -> Sequence[str]:
        return sorted(set(value))

    def encode(self, value: list[str]) -> list[int]:  # type: ignore[override]
        return [self._number(name) for name in value]

    def size(self, encoded: Any) -> int:
        return 1

    def pad(self, encoded: Sequence[Sequence[int]], generator: torch.Generator | None = None) -> Padded:  # type: ignore[override]
        return pad_lists(encoded)

    def show(self, value: Sequence[str]) -> str:
        return " ".join(value)


def pad_lists(lists: Sequence[Sequence[int]]) -> Padded:
    """Lists of numbers as `values` (batch, longest), with 0 after their ends, and the `mask` of what is real."""
    values = pad_sequence([torch.tensor(list(each), dtype=torch.long) for each in lists], batch_first=True)
    lengths = torch.tensor([len(each) for each in lists])
    return {"values": values, "mask": torch.arange(values.shape[1]) < lengths[:, None]}
