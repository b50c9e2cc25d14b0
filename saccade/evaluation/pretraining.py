"""Metrics of masked tokens and next sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from saccade.evaluation.figures import Figure
from saccade.evaluation.perplexity import percent, perplexity

HIGHER_IS_BETTER = {"masked_accuracy": True, "masked_perplexity": False, "next_accuracy": True}


class Guessed(NamedTuple):
    """A model's results on some text."""

    log_prob: float
    """The sum over all hidden tokens, in nats."""

    tokens: int
    """How many were hidden."""

    right: int
    """How many of them were guessed."""

    pairs: int
    next_right: int
    """The number of pairs where the model knows whether the second text follows the first."""


def score_guesses(texts: Iterable[Guessed], metrics: Sequence[str]) -> dict[str, Figure]:
    """The metrics of several texts taken together, so that each token counts the same."""
    whole = Guessed(*map(sum, zip(*texts, strict=True)))
    figures = {
        "masked_accuracy": Figure(percent(whole.right, whole.tokens), "% of the hidden tokens that are guessed"),
        "masked_perplexity": Figure(
            perplexity(-whole.log_prob, whole.tokens),
            "exp of the mean loss of a hidden token; depends on the vocabulary",
        ),
        "next_accuracy": Figure(
            percent(whole.next_right, whole.pairs), "% of the pairs known to follow each other, or not to"
        ),
    }
    return {name: figures[name] for name in metrics}
