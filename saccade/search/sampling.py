"""Sampling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Unpack

import torch
from torch import Tensor

from saccade.search.constraints import IMPOSSIBLE, Wishes
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
    """One hypothesis of each sentence, each token drawn at random.

    Log-probabilities are those of the model, not of the changed distribution that was drawn from.

    Args:
        temperature: what log-probabilities are divided by: below 1 the likely becomes likelier.
        top_k: draws from the k likeliest tokens alone.
        top_p: draws from the fewest tokens that have this probability together, after temperature and `top_k`.
        generator: of the random numbers; PyTorch's own by default.

    The others are those of `saccade.search.beam`; the penalties change the score alone.
    """
    check_draws(temperature=temperature, top_k=top_k, top_p=top_p)

    def choose(allowed: Tensor) -> Tensor:
        scores = allowed / temperature
        if top_k is not None:
            scores = keep_top_k(scores, top_k)
        if top_p is not None and top_p < 1:
            scores = keep_top_p(scores, top_p)
        return torch.multinomial(scores.softmax(dim=1), 1, generator=generator).squeeze(1)

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
    """Refuses what nothing can be drawn with."""
    if not 0 < temperature < math.inf:
        raise ValueError(
            f"temperature is a number above 0, got {temperature}; for the likeliest tokens use greedy search."
        )
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k is at least 1, got {top_k}.")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p is above 0 and at most 1, got {top_p}.")


def keep_top_k(scores: Tensor, count: int) -> Tensor:
    """The scores (rows, vocab) with all but the highest `count` at -infinity; ties with the last one stay."""
    least = scores.topk(min(count, scores.shape[1]), dim=1).values[:, -1:]
    return scores.masked_fill(scores < least, IMPOSSIBLE)


def keep_top_p(scores: Tensor, mass: float) -> Tensor:
    """The scores (rows, vocab) with all at -infinity but the highest that reach this probability together."""
    ordered, order = scores.sort(dim=1, descending=True)
    probabilities = ordered.softmax(dim=1)
    before = probabilities.cumsum(dim=1) - probabilities
    ordered = ordered.masked_fill(before >= mass, IMPOSSIBLE)
    return torch.empty_like(scores).scatter_(1, order, ordered)
