"""A language model that reranks the texts found by a search."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from saccade.search.penalties import Penalties
from saccade.tasks.answers import Answer, GeneratedText
from saccade.tasks.base import Task
from saccade.tasks.generation.options import LENGTH_PENALTY, SearchOptions
from saccade.tasks.text_data import TextData


class Rescoring:
    r"""Ranks the hypotheses of a beam by two models.

    .. math:: \frac{\log p(y \mid x) + \lambda \log p_{LM}(y)}{lp(y)}

    lp is the length penalty of the search. In the paper the language model's part is not divided by the length; its
    \lambda is smaller by as much. The two models need not have the same units: one may write letters, the other words.

    Reference:
        Chan et al. (2015), arXiv:1508.01211, section 3.4.

    Args:
        language, model: a task of language modelling, and its model.
        weight: lambda.
    """

    def __init__(self, language: Task, model: nn.Module, weight: float) -> None:
        if not isinstance(language, TextData):
            raise ValueError(f"lm must be a run of language modelling, but its task is {type(language).__name__}.")
        if not 0.0 <= weight < math.inf:
            raise ValueError(f"lm_weight must be 0 or more, got {weight}.")
        self.language, self.model, self.weight = language, model, weight

    def asked(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options of a search that keeps all of its hypotheses."""
        given = SearchOptions.of(options)
        if given.sample or given.width == 1:
            raise ValueError("lm chooses among the texts that a beam search finds: set beam to 2 or more.")
        return {**options, "nbest": given.width}

    def ranked(self, answers: Sequence[Answer], options: Mapping[str, Any]) -> list[Answer]:
        """The answers with their alternatives in the new order, as many as were asked for."""
        given = SearchOptions.of(options)
        alpha = LENGTH_PENALTY if given.length_penalty is None else given.length_penalty
        several = [answer.alternatives or [answer] for answer in answers]
        texts = list(dict.fromkeys(each.text for group in several for each in group))
        read = self.language.apart().predict(self.model, texts, score=True)
        known = {text: float(each.value) for text, each in zip(texts, read, strict=True)}
        found = []
        for group in several:
            scored = [self._scored(each, known[each.text], alpha) for each in group]
            scored.sort(key=lambda each: (getattr(each, "finished", True), each.score), reverse=True)
            best = scored[: given.nbest]
            found.append(replace(best[0], alternatives=best if given.nbest > 1 else []))
        return found

    def _scored(self, answer: Answer, log_prob: float, alpha: float) -> Answer:
        """The answer with the language model's part added to its score."""
        assert isinstance(answer, GeneratedText)
        steps = len(answer.tokens) + answer.finished
        added = Penalties(alpha, 0.0).normalise(torch.tensor(self.weight * log_prob, dtype=torch.float64), steps)
        return replace(answer, score=answer.score + float(added), alternatives=[])
