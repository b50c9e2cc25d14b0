"""What a model answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import torch
from torch import Tensor


@dataclass(frozen=True)
class Attended:
    """What a model attended to while it answered."""

    weights: Tensor
    """(queries, keys)."""

    queries: list[str]
    """A name for each step of the answer: the pieces of a text, or the label."""

    keys: list[str]
    """A name for each position of the input: pieces, frames, neighbours."""

    query_words: list[list[int]] = field(default_factory=list)
    """The places in `queries` of the pieces of each word, where the answer is a text."""

    key_words: list[list[int]] = field(default_factory=list)
    """The places in `keys` of the pieces of each word, where the input is a text."""

    picked: list[int] | None = None
    """The keys that were picked, if the model read only those."""

    role: str | None = None
    """The input whose positions are the keys of a single query; None for other attention."""


NOWHERE = Attended(torch.zeros(0, 1), [], ["</s>"])
"""The attention of an answer to an empty input, for which the model does not run."""


@dataclass(frozen=True)
class Answer:
    """A model's answer to one input."""

    value: Any
    """A text, a label, a list of labels, a number; None if the input is empty and the task has no empty value."""

    score: float
    """How certain the model is: answers are ranked by it, higher first. The scale depends on the task."""

    attention: Attended | None = None
    """None for a model without attention."""

    alternatives: list[Answer] = field(default_factory=list)
    """The best answers, this one first, if several were asked for."""

    details: dict[str, Any] = field(default_factory=dict)
    """Further details from the task, in JSON's types: probabilities, for example."""

    @property
    def text(self) -> str:
        """The answer as text."""
        if isinstance(self.value, list):
            return ", ".join("+".join(map(str, each)) if isinstance(each, list) else str(each) for each in self.value)
        if self.value is None:
            return ""
        return f"{self.value:.4g}" if isinstance(self.value, float) else str(self.value)

    @property
    def weights(self) -> Tensor | None:
        """(queries, keys); None for a model without attention."""
        return None if self.attention is None else self.attention.weights

    def with_weights(self, change: Callable[[Any], Any]) -> Self:
        """The answer with its weights, and those of its alternatives, passed through `change`."""
        attention = self.attention
        changed = None if attention is None else replace(attention, weights=change(attention.weights))
        others = [other.with_weights(change) for other in self.alternatives]
        return replace(self, attention=changed, alternatives=others)


@dataclass(frozen=True)
class Origin:
    """Where a token of a text came from."""

    token: str
    """The piece as the tokeniser shows it."""

    way: str
    """The way that contributed most to its probability: generate, copy, lexicon, ..."""

    share: float
    """How much of its probability that way contributed."""

    position: int | None = None
    """The position of the source that it was copied or looked up from, counted from 0; None if it was generated."""

    key: str | None = None
    """What is at that position."""

    word: int | None = None
    """The word of the source that the position belongs to, counted from 0, where the source is a text."""

    def as_json(self) -> dict[str, Any]:
        """The origin in JSON's types."""
        known = {"token": self.token, "from": self.way, "share": round(self.share, 4)}
        if self.position is not None:
            known |= {"position": self.position, "key": self.key, "word": self.word}
        return known


@dataclass(frozen=True)
class GeneratedText(Answer):
    """A text that a model wrote token by token."""

    tokens: list[int] = field(default_factory=list)
    """The ids of the text, without the end."""

    finished: bool = True
    """Whether the model ended the text itself, before the limit on its length."""

    log_prob: float | None = None
    """The log-probability of the whole text, including its end; None if unknown."""

    others: dict[str, Attended] = field(default_factory=dict)
    """The attention to each further source; `attention` is that to the first."""

    origins: list[Origin] | None = None
    """Where each token came from, including the end; None for a model that only generates words."""

    def with_weights(self, change: Callable[[Any], Any]) -> Self:
        others = {role: replace(each, weights=change(each.weights)) for role, each in self.others.items()}
        return replace(super().with_weights(change), others=others)
