"""Sampling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Unpack

import torch
from torch import Tensor

from saccade.search.constraints import IMPOSSIBLE, Past, Rules, Stepped, Wishes
from saccade.search.hypothesis import Hypothesis, Searchable
from saccade.search.walk import walk


def sample(
    model: Searchable,
    encoded: Any,
    *,
    max_length: int | Sequence[int] | Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    length_penalty: float = 0.0,
    coverage_penalty: float = 0.0,
    weights: bool = True,
    bos: int = 1,
    eos: int = 2,
    pad: int = 0,
    **wishes: Unpack[Wishes],
) -> list[Hypothesis]:
    """Samples one hypothesis for each sentence.

    Log-probabilities are those of the model, not of the modified distribution that is sampled from.

    Args:
        temperature: divides the log-probabilities; below 1, likely tokens become more likely.
        top_k: samples only from the k most likely tokens.
        top_p: samples from the smallest set of tokens with this total probability, after temperature and `top_k`.
        generator: the random number generator; PyTorch's default if None.

    For the other arguments see `saccade.search.beam`; the penalties affect only the score.
    """
    check_draws(temperature=temperature, top_k=top_k, top_p=top_p)

    def choose(given: Stepped, past: Past, rules: Rules) -> tuple[Tensor, Tensor]:
        allowed = rules(given.log_probs(), past)
        scores = allowed / temperature
        if top_k is not None:
            scores = keep_top_k(scores, top_k)
        if top_p is not None and top_p < 1:
            scores = keep_top_p(scores, top_p)
        tokens = torch.multinomial(scores.softmax(dim=1), 1, generator=generator)
        return tokens.squeeze(1), allowed.gather(1, tokens).squeeze(1)

    return walk(
        model,
        encoded,
        choose=choose,
        max_length=max_length,
        length_penalty=length_penalty,
        coverage_penalty=coverage_penalty,
        weights=weights,
        bos=bos,
        eos=eos,
        pad=pad,
        **wishes,
    )


def check_draws(*, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None) -> None:
    """Rejects sampling arguments that are out of range."""
    if not 0 < temperature < math.inf:
        raise ValueError(
            f"temperature must be above 0, got {temperature}; for the most likely tokens use greedy search."
        )
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k must be 1 or more, got {top_k}.")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p must be above 0 and at most 1, got {top_p}.")


def keep_top_k(scores: Tensor, count: int) -> Tensor:
    """The scores (rows, vocab) with all but the highest `count` at -infinity; ties with the last one stay."""
    least = scores.topk(min(count, scores.shape[1]), dim=1).values[:, -1:]
    return scores.masked_fill(scores < least, IMPOSSIBLE)


def keep_top_p(scores: Tensor, mass: float) -> Tensor:
    """The scores (rows, vocab), keeping the highest that together reach this probability; the rest are -infinity."""
    ordered, order = scores.sort(dim=1, descending=True)
    probabilities = ordered.softmax(dim=1)
    before = probabilities.cumsum(dim=1) - probabilities
    ordered = ordered.masked_fill(before >= mass, IMPOSSIBLE)
    return torch.empty_like(scores).scatter_(1, order, ordered)
