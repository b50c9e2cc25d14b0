"""Metrics of answers that are parts of a text."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Sequence
from statistics import fmean

from saccade.evaluation.figures import Figure

HIGHER_IS_BETTER = {"exact_match": True, "f1": True}
ARTICLES = {"a", "an", "the"}


def score_spans(found: Sequence[str], wanted: Sequence[Sequence[str]], metrics: Sequence[str]) -> dict[str, Figure]:
    """The metrics of answers; each is compared with the right answer that is nearest to it.

    Case, punctuation and English articles do not count. An empty text stands for no answer.

    Reference:
        Rajpurkar et al. (2016), arXiv:1606.05250, section 6.1.
    """
    pairs = [
        (_words(one), [_words(text) for text in several] or [[]]) for one, several in zip(found, wanted, strict=True)
    ]
    exact = fmean(float(any(one == other for other in several)) for one, several in pairs)
    overlap = fmean(max(_f1(one, other) for other in several) for one, several in pairs)
    figures = {
        "exact_match": Figure(100.0 * exact, "% of answers that are right word for word"),
        "f1": Figure(100.0 * overlap, "mean F1 of the words of an answer, in %"),
    }
    return {name: figures[name] for name in metrics}


def _words(text: str) -> list[str]:
    plain = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return [word for word in plain.split() if word not in ARTICLES]


def _f1(found: list[str], wanted: list[str]) -> float:
    if not found or not wanted:
        return float(found == wanted)
    shared = (Counter(found) & Counter(wanted)).total()
    return 2.0 * shared / (len(found) + len(wanted))
