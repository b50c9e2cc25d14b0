"""How a language model continues a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from saccade.data.special import EOS
from saccade.data.tokenisers import Tokeniser
from saccade.evaluation.neural_cache import NeuralCache
from saccade.models import LanguageModel
from saccade.models.language_model import Beginnings
from saccade.search import Constraint, Past
from saccade.search.penalties import Penalties
from saccade.tasks.answers import Answer, GeneratedText
from saccade.tasks.base import Example
from saccade.tasks.generation.options import WritingOptions
from saccade.tasks.generation.searching import search

CACHE = ("cache_size", "cache_weight", "cache_flatness")
"""The options of a neural cache."""

ADDED = 50
"""The default maximum number of tokens to add to a text."""


@dataclass(frozen=True, kw_only=True)
class ContinuationOptions(WritingOptions):
    """How a text is continued, or scored.

    Args:
        score: return the log-probability of each text instead of a continuation.
        beam: hypotheses kept at each step of the search (default: 1, which is greedy search).
        length_penalty: exponent of the length that a score is divided by (default: 0).
        min_length: the minimum number of tokens to add (default: 0).
        max_length: the maximum number of tokens to add (default: 50).
        cache_size: with score, mix in a cache of this many recent words (default: no cache).
        cache_weight: how much the cache counts, from 0 to less than 1 (default: 0.1).
        cache_flatness: 0 makes all cached words count the same; higher values prefer words in a similar context
            (default: 0.3).
    """

    usual_beam: ClassVar[int] = 1

    score: bool = False
    cache_size: int | None = None
    cache_weight: float | None = None
    cache_flatness: float | None = None

    def check(self) -> None:
        super().check()
        if self.score and self.writing():
            raise ValueError(f"score measures a text, but {self.writing()[0]} changes how it is continued: choose one.")
        caching = [name for name in CACHE if getattr(self, name) is not None]
        if caching and self.cache_size is None:
            raise ValueError(f"{caching[0]} needs a cache: set cache_size as well, for example to 500.")
        self.cache()

    @property
    def shares(self) -> bool:
        return super().shares and not self.score  # contiguous texts of one request must not follow those of another

    def writing(self) -> list[str]:
        """The options of a continuation that are given."""
        others = [each for each in fields(self) if each.name not in ("score", *CACHE)]
        return [each.name for each in others if getattr(self, each.name) != each.default]

    def cache(self) -> NeuralCache | None:
        """The cache that is asked for."""
        if self.cache_size is None:
            return None
        given = {name.removeprefix("cache_"): getattr(self, name) for name in CACHE}
        return NeuralCache(**{name: value for name, value in given.items() if value is not None})

    def describe(self) -> str:
        cache = self.cache()
        if cache is None:
            return super().describe()
        return f"a cache of {cache.size} words (weight {cache.weight:g}, flatness {cache.flatness:g})"

    def wishes(self) -> dict[str, Any]:
        found = {name: value for name, value in super().wishes().items() if name != "min_length"}
        return {"length_penalty": 0.0, **found}


def continue_texts(
    tokeniser: Tokeniser,
    model: LanguageModel,
    batch: dict[str, Tensor],
    before: Sequence[float],
    examples: Sequence[Example],
    options: ContinuationOptions,
) -> list[Answer]:
    """The texts, continued by a causal model.

    The search begins with the tokens of each text, so that texts of different lengths share a batch. The score is that
    of the added tokens alone.

    Args:
        tokeniser: of the model's vocabulary.
        model: with `begin`, `step`, `select`, `reorder` and `longest`.
        batch: `text`, with the start token, and `text_mask`.
        before: the log-probability of each text.
        examples: the texts as they were given.
        options: of the search.
    """
    mask = batch["text_mask"]
    prompts = [ids[real].tolist()[1:] for ids, real in zip(batch["text"], mask, strict=True)]
    lengths = mask.sum(1) - 1
    limit, most = lengths + (options.max_length or ADDED), model.longest()
    found = search(
        model,
        Beginnings(mask[:, :0]),
        options,
        max_length=limit if most is None else limit.clamp(max=most - 1),  # and the end
        prefix=prompts,
        constraints=[_add_at_least(options.min_length, lengths)] if options.min_length else [],
    )
    penalty = Penalties(options.wishes()["length_penalty"], 0.0)
    answers: list[Answer] = []
    for example, prompt, known, hypotheses in zip(examples, prompts, before, found, strict=True):
        several: list[Answer] = []
        unread = len(tokeniser.encode(example["text"])) - len(prompt)
        details = {"unread_tokens": unread} if unread else {}
        for tokens, _, total, finished, *_ in hypotheses:
            log_prob, steps = total - known, len(tokens) - len(prompt) + finished
            score = float(penalty.normalise(torch.tensor(log_prob, dtype=torch.float64), steps))
            text = _joined(tokeniser, example["text"], prompt, tokens)
            several.append(
                GeneratedText(text, score, details=details, tokens=tokens, finished=finished, log_prob=log_prob)
            )
        several.sort(key=lambda answer: -answer.score)
        answers.append(replace(several[0], alternatives=several if options.nbest > 1 else []))
    return answers


def _joined(tokeniser: Tokeniser, text: str, prompt: list[int], tokens: list[int]) -> str:
    """The text as given, followed by what was added, so that unknown parts keep their spelling."""
    whole, begun = tokeniser.decode(tokens), tokeniser.decode(prompt)
    return tokeniser.normalise(text) + whole.removeprefix(begun) if whole.startswith(begun) else whole


def _add_at_least(count: int, lengths: Tensor) -> Constraint:
    """Forbids the end until this many tokens have been added to texts of these lengths."""

    def constraint(scores: Tensor, past: Past) -> Tensor:
        early = past.tokens.shape[1] < lengths[past.sentences] + count
        scores[early, EOS] = -torch.inf
        return scores

    return constraint
