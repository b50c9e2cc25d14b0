"""What a model answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import torch
from torch import Tensor


@dataclass(frozen=True)
class Attended:
    """Where a model looked while it answered."""

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
    """The keys that were picked and read, if the model read no others."""

    role: str | None = None
    """The input whose positions are the keys of a single query; None for other attention."""


NOWHERE = Attended(torch.zeros(0, 1), [], ["</s>"])
"""Where a model looks that is not asked: the input is empty."""


@dataclass(frozen=True)
class Answer:
    """What a model answers to one input."""

    value: Any
    """A text, a label, a list of labels, a number; None if the input is empty and the task has no empty value."""

    score: float
    """How sure the model is: higher is surer, and answers are ranked by it. The scale is the task's."""

    attention: Attended | None = None
    """None for a model without attention."""

    alternatives: list[Answer] = field(default_factory=list)
    """The best answers, this one first, if several were asked for."""

    details: dict[str, Any] = field(default_factory=dict)
    """More that the task says about the answer, as JSON can hold it: probabilities, for example."""

    @property
    def text(self) -> str:
        """The answer as its user reads it."""
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
        """The answer with its weights, and those of its alternatives, as `change` makes them."""
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
    """How it was said: generate, copy, lexicon, ...: the way that contributed most to its probability."""

    share: float
    """How much of its probability that way contributed."""

    position: int | None = None
    """The position of the source that it was copied or looked up from, counted from 0; None if it was generated."""

    key: str | None = None
    """What is at that position."""

    word: int | None = None
    """The word of the source that the position belongs to, counted from 0, where the source is a text."""

    def as_json(self) -> dict[str, Any]:
        """What is known of it, in JSON's types."""
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
    """The log-probability of the whole text, its end included; None if unknown."""

    others: dict[str, Attended] = field(default_factory=dict)
    """Where the model looked in each further source; `attention` is that of the first."""

    origins: list[Origin] | None = None
    """Where each token came from, the end included; None for a model with only one way to say a word."""

    def with_weights(self, change: Callable[[Any], Any]) -> Self:
        others = {role: replace(each, weights=change(each.weights)) for role, each in self.others.items()}
        return replace(super().with_weights(change), others=others)
