"""Greedy search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from torch import Tensor

from saccade.search.constraints import Past, Rules, Stepped, Wishes
from saccade.search.hypothesis import Hypothesis, Searchable
from saccade.search.walk import walk


def greedy(
    model: Searchable,
    encoded: Any,
    *,
    max_length: int | Sequence[int] | Tensor,
    length_penalty: float = 0.6,
    coverage_penalty: float = 0.0,
    weights: bool = True,
    bos: int = 1,
    eos: int = 2,
    pad: int = 0,
    **wishes: Unpack[Wishes],
) -> list[Hypothesis]:
    """Takes the most likely token at each step: a beam search of size 1.

    For the arguments see `saccade.search.beam`; the penalties affect only the score, not the choice.
    """
    return walk(
        model,
        encoded,
        choose=_best,
        max_length=max_length,
        length_penalty=length_penalty,
        coverage_penalty=coverage_penalty,
        weights=weights,
        bos=bos,
        eos=eos,
        pad=pad,
        **wishes,
    )


def _best(given: Stepped, past: Past, rules: Rules) -> tuple[Tensor, Tensor]:
    values, tokens = rules.best(given, past, 1)
    return tokens.squeeze(1), values.squeeze(1)
