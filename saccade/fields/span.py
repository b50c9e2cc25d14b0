"""Spans: a part of a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from saccade.data.cell import Cell, text_of
from saccade.fields.base import Field, Padded, fields

Part = dict[str, list[Any]]
"""The right answers: their `texts`, and where each starts in the text, in characters (`starts`; -1 if unknown)."""


@fields.register("span")
class Span(Field):
    """A part of another column's text, such as the answer to a question about it.

    A cell is the words themselves, meaning their first occurrence, or `{"text": ..., "start": 17}` with their position
    in characters, counted from 0. Several right answers are a list, or lists under `text` and `answer_start` (as in
    SQuAD). An empty cell means that the text has no answer.
    """

    def read(self, raw: Any, cell: Cell) -> Part:
        if isinstance(raw, Mapping):
            texts = _listed(raw.get("text"))
            starts = _listed(raw.get("start", raw.get("answer_start")))
            starts = starts or [-1] * len(texts)
        else:
            texts = _listed(raw)
            starts = [-1] * len(texts)
        whole = all(isinstance(start, int) and not isinstance(start, bool) and start >= -1 for start in starts)
        if len(starts) != len(texts) or not whole:
            raise cell.bad(
                f"the {cell.role} has {len(texts)} texts and the starts {starts!r:.40}", "Give one for each."
            )
        read = [text_of(text, cell, may_be_empty=True).strip() for text in texts]
        kept = [(text, start) for text, start in zip(read, starts, strict=True) if text]
        return {"texts": [text for text, _ in kept], "starts": [start for _, start in kept]}

    def encode(self, value: Part) -> list[int]:
        raise NotImplementedError("Only the task, which has the text, knows the tokens of a span.")

    def size(self, encoded: Any) -> int:
        return 1

    def pad(self, encoded: Sequence[Sequence[int]], generator: torch.Generator | None = None) -> Padded:
        return {"values": torch.tensor(list(map(list, encoded)), dtype=torch.long)}

    def show(self, value: Part) -> str:
        return value["texts"][0] if value["texts"] else "(none)"


def _listed(value: Any) -> list[Any]:
    """One value or several as a list; nothing as an empty one."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]
