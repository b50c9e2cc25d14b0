"""Reviews: many short texts by one author, or about one thing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from saccade.data.cell import Cell, text_of
from saccade.data.tokenisers import Tokeniser
from saccade.fields.base import fields
from saccade.fields.document import Document


@fields.register("reviews")
class Reviews(Document):
    """The text of a review. A model reads several together, as a document whose sentences are reviews.

    Only the task knows which reviews belong together, so it joins them. A text may be empty or missing.

    Args:
        tokeniser: word, char, bpe, unigram, tagged or pretokenised, with options if needed.
        max_reviews: the maximum number of reviews that are read, the latest ones if there are times.
        max_words: the maximum number of pieces of a review that are read; the rest is cut off.
    """

    optional = True

    def __init__(self, *, tokeniser: Tokeniser | str = "word", max_reviews: int = 20, max_words: int = 30) -> None:
        super().__init__(tokeniser=tokeniser, sentences="given", max_sentences=max_reviews, max_words=max_words)
        self.max_reviews = max_reviews

    def read(self, raw: Any, cell: Cell) -> list[str]:
        return [text_of(raw, cell, may_be_empty=True)]

    def truncated(self, encoded: Sequence[Sequence[int]]) -> str | None:
        return None  # cutting reviews is what the field is for
