"""Which reviews, and which of their words, decided a rating.

A model names its attentions by what they read: their paths contain `user` or `item`, and `reviews` for attention to
reviews, `words` for attention to the words of the review picked before. Any other is over all words of the side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from saccade.fields import Reviews
from saccade.interpretation.explorer import Map, TextAxis
from saccade.interpretation.recording import Recorded, Trace
from saccade.tasks.answers import Attended
from saccade.tasks.recommendation.log import Side

WORDS = 3
"""How many words a reason names."""

LONGEST = 200
"""Characters of a review that a reason quotes."""


class Pointer(NamedTuple):
    """What one pointer of a model chose."""

    path: str
    review: int
    """The number of the review among those that were read."""
    weights: Tensor
    """(reviews,): how probable each was."""
    words: Tensor | None
    """(words,): the weights of the words of the review; None if the model does not look at words."""


class SideLook(NamedTuple):
    """What a model attended to on one side of a rating."""

    texts: list[str]
    """The reviews that it could read."""
    axis: TextAxis
    """Their words."""
    pointers: list[Pointer]
    whole: list[tuple[str, Tensor]]
    """The paths and weights (words,) of attentions to all words."""

    @property
    def weights(self) -> Tensor | None:
        """(words,): the weight of each word; None if the model looks at nothing here."""
        if self.pointers and all(pointer.words is not None for pointer in self.pointers):
            found = torch.zeros(len(self.axis))
            for pointer in self.pointers:
                places = self._places(pointer.review)
                assert pointer.words is not None
                found[places] += pointer.words[: len(places)] / len(self.pointers)
            return found
        return self.whole[0][1] if self.whole else None

    def _places(self, review: int) -> list[int]:
        """The places of the words of a review on the axis, which leaves out reviews without words."""
        return list((self.axis.sentences or ())[review])

    def reason(self) -> dict[str, Any] | None:
        """The review that was pointed at first, or that has the word with the highest weight, and its best words."""
        weights = self.weights
        if weights is None or not self.texts:
            return None
        best = int(weights.argmax())
        groups = [list(group) for group in self.axis.sentences or ()]
        review = self.pointers[0].review if self.pointers else next(n for n, g in enumerate(groups) if best in g)
        ranked = sorted(groups[review], key=lambda place: -float(weights[place]))
        words = list(dict.fromkeys(self.axis.pieces[place] for place in ranked if weights[place] > 0))[:WORDS]
        text = " ".join(self.texts[review].split())
        return {"review": text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}...", "words": words}

    def attended(self, side: Side, answer: str) -> Attended | None:
        """The weights of the words, for an answer."""
        weights = self.weights
        if weights is None or not len(self.axis):
            return None
        chosen = self._chosen([pointer.review for pointer in self.pointers])
        return Attended(weights.unsqueeze(0), [answer], self.axis.names, picked=chosen or None, role=side)

    def maps(self, side: Side, answer: str) -> list[Map]:
        """What the explorer draws: the words that decided, and how each pointer chose among the reviews."""
        weights, answers = self.weights, TextAxis(pieces=[answer])
        if weights is None or not len(self.axis):
            return []
        if not self.pointers:
            return [_map(path, found, answers, self.axis) for path, found in self.whole]
        picked = self._chosen([pointer.review for pointer in self.pointers])
        maps = [_map(f"{side}: words of the chosen reviews", weights, answers, self.axis, picked)]
        spoken = TextAxis(pieces=[" ".join(text.split()) for text in self.texts])
        for number, pointer in enumerate(self.pointers, start=1):
            name = f"{side}: review" + (f" of pointer {number}" if len(self.pointers) > 1 else "")
            maps.append(_map(name, pointer.weights, answers, spoken, [pointer.review]))
        return maps

    def _chosen(self, reviews: Sequence[int]) -> list[int]:
        return sorted({place for review in reviews for place in self._places(review)})


def _map(name: str, weights: Tensor, queries: TextAxis, keys: TextAxis, picked: Sequence[int] | None = None) -> Map:
    return Map(name=name, weights=weights[None, None], queries=queries, keys=keys, picked=picked)


def looked_at(field: Reviews, side: Side, texts: Sequence[Sequence[str]], trace: Trace, mask: Tensor) -> list[SideLook]:
    """What a model attended to on one side, for each example of a batch.

    Args:
        field: of the reviews.
        side: user or item.
        texts: the reviews that were read, for each example.
        trace: what `record` saw.
        mask: bool (batch, reviews, words), the words that were read.
    """
    calls = {path: trace[path] for path in trace.paths if side in path.split(".")}
    reviews = {path: call for path, call in calls.items() if "reviews" in path.split(".")}
    words = {path: call for path, call in calls.items() if "words" in path.split(".")}
    whole = {path: _rows(call) for path, call in calls.items() if path not in {**reviews, **words}}
    pointing = [_pointing(path, call, words, side) for path, call in reviews.items()]
    lengths = mask.sum(-1).cpu()
    found = []
    for row, own in enumerate(texts):
        read = list(own)
        count, total = len(read), int(lengths[row].sum())
        pointers = []
        if total:
            for path, choices, weights, inner in pointing:
                review = int(choices[row])
                length = int(lengths[row, review])
                pointers.append(
                    Pointer(path, review, weights[row, :count], None if inner is None else inner[row, :length])
                )
        seen = [(path, weights[row, :total]) for path, weights in whole.items()] if total else []
        found.append(SideLook(read, field.axis(read), pointers, seen))
    return found


def _pointing(
    path: str, call: Recorded, words: dict[str, Recorded], side: Side
) -> tuple[str, Tensor, Tensor, Tensor | None]:
    """The choices (batch,), weights (batch, reviews) and weights of words (batch, words) of a pointer."""
    weights = _rows(call)
    drawn = weights if call.picked is None else call.picked.float().cpu().mean((1, 2))
    inner = words.get(path.replace(f"reviews.{side}", f"words.{side}"))
    return path, drawn.argmax(1), weights, None if inner is None else _rows(inner)


def _rows(call: Recorded) -> Tensor:
    """(batch, keys): averaged over heads and queries."""
    return call.weights.float().cpu().mean((1, 2))
