"""Metrics of language models."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from saccade.evaluation.figures import Figure


class Read(NamedTuple):
    """A language model's results on some text."""

    log_prob: float
    """The sum over all predicted tokens, in nats."""

    tokens: int
    """How many were predicted."""

    right: int
    """How many of them the model would have chosen itself."""

    words: int
    bytes: int
    unknown: int = 0
    """How many of the tokens are unknown."""


METRICS: dict[str, tuple[Callable[[Read], float], bool, str]] = {
    "perplexity": (
        lambda read: perplexity(-read.log_prob, read.tokens),
        False,
        "exp of the mean loss of a token; depends on the vocabulary",
    ),
    "word_perplexity": (
        lambda read: perplexity(-read.log_prob, read.words),
        False,
        "exp of the mean loss of a word, as separated by spaces",
    ),
    "bits_per_byte": (
        lambda read: -read.log_prob / math.log(2.0) / read.bytes if read.bytes else math.nan,
        False,
        "mean loss of a byte in bits; comparable with any model",
    ),
    "accuracy": (
        lambda read: percent(read.right, read.tokens),
        True,
        "% of tokens that the model would have chosen",
    ),
}
"""Each metric, whether higher is better, and its definition."""

HIGHER_IS_BETTER = {name: higher for name, (_, higher, _) in METRICS.items()}


def score_reading(texts: Iterable[Read], metrics: Sequence[str]) -> dict[str, Figure]:
    """The metrics of several texts taken together, so that each token counts the same.

    Args:
        texts: the results on each.
        metrics: names from `METRICS`.
    """
    whole = Read(*map(sum, zip(*texts, strict=True)))
    return {name: Figure(METRICS[name][0](whole), METRICS[name][2]) for name in metrics}


def about_unknown(texts: Iterable[Read]) -> list[str]:
    """A sentence about what unknown tokens mean for the figures; empty if there are none."""
    whole = Read(*map(sum, zip(*texts, strict=True)))
    if not whole.unknown:
        return []
    are = "token is" if whole.unknown == 1 else "tokens are"
    return [
        f"{whole.unknown:,} of {whole.tokens:,} {are} not in the vocabulary. The model only says how likely an unknown "
        "token is there, not which one: that is easier, so perplexity and bits per byte are too low to compare "
        "with other vocabularies."
    ]


def perplexity(loss: float, count: int) -> float:
    """exp(loss / count); infinite where that is too large for a float."""
    if not count:
        return math.nan
    return math.exp(loss / count) if loss / count < 700.0 else math.inf


def percent(part: int, whole: int) -> float:
    """A percentage; NaN if the whole is 0."""
    return 100.0 * part / whole if whole else math.nan
