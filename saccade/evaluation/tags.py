"""Metrics of predicted tags."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from saccade.evaluation.decisions import macro_f1
from saccade.evaluation.figures import Figure
from saccade.evaluation.labels import class_table, indicators
from saccade.evaluation.tables import Table

HIGHER_IS_BETTER: dict[str, bool] = {"accuracy": True, "macro_f1": True, "entity_f1": True}

Entity = tuple[str, int, int]
"""Its kind, its first word, and the word after its last."""


def score_tags(
    predicted: Sequence[Sequence[str]], wanted: Sequence[Sequence[str]], metrics: Sequence[str]
) -> dict[str, Figure]:
    """Computes several metrics of the same answers; words of a truncated text that have no tag count as wrong.

    Args:
        predicted: the tags of each text.
        wanted: the true tags.
        metrics: names from `HIGHER_IS_BETTER`.
    """
    filled = _filled(predicted, wanted)
    found, true = list(chain(*filled)), list(chain(*wanted))
    _, indicated, right = _indicated(filled, wanted)
    figures = {
        "accuracy": lambda: Figure(
            100.0 * sum(a == b for a, b in zip(found, true, strict=True)) / len(true), "% of words with the right tag"
        ),
        "macro_f1": lambda: Figure(100.0 * macro_f1(indicated, right), "F1 in %, mean of the tags"),
        "entity_f1": lambda: Figure(
            100.0 * entity_f1(filled, wanted), "F1 in %, of entities with the right words and the right kind"
        ),
    }
    return {name: figures[name]() for name in metrics}


def tables_of_tags(predicted: Sequence[Sequence[str]], wanted: Sequence[Sequence[str]]) -> list[Table]:
    """The figures of each tag.

    Args:
        predicted: the tags of each text.
        wanted: the true tags.
    """
    names, found, true = _indicated(_filled(predicted, wanted), wanted)
    return [class_table(found, true, names, "words")]


def _filled(predicted: Sequence[Sequence[str]], wanted: Sequence[Sequence[str]]) -> list[list[str]]:
    """The predicted tags, and "" for words of a truncated text."""
    if len(predicted) != len(wanted) or not any(wanted):
        raise ValueError(f"{len(predicted)} answers cannot be compared with {len(wanted)} lists of tags.")
    return [[*found, *[""] * (len(true) - len(found))] for found, true in zip(predicted, wanted, strict=True)]


def _indicated(
    filled: Sequence[Sequence[str]], wanted: Sequence[Sequence[str]]
) -> tuple[list[str], NDArray[np.bool_], NDArray[np.bool_]]:
    """The names of all tags; and (words, tags), which are predicted and which are right."""
    found, true = list(chain(*filled)), list(chain(*wanted))
    names = sorted({*found, *true} - {""})
    return names, indicators([[tag] if tag else [] for tag in found], names), indicators(true, names)


def entities(tags: Sequence[str]) -> set[Entity]:
    """The entities of a text: a word with the tag `B-kind`, and the words with `I-kind` that follow it.

    An `I-kind` that follows no word of its kind begins an entity too.

    Reference:
        The convention of CoNLL-2000 and its evaluation: Tjong Kim Sang and Buchholz (2000), arXiv:cs/0009008.
    """
    found: set[Entity] = set()
    start, kind = 0, ""
    for place, tag in enumerate([*tags, "O"]):
        mark, _, own = tag.partition("-")
        if kind and (mark != "I" or own != kind):
            found.add((kind, start, place))
            kind = ""
        if not kind and mark in ("B", "I"):
            start, kind = place, own
    return found


def entity_f1(predicted: Sequence[Sequence[str]], wanted: Sequence[Sequence[str]]) -> float:
    """F1 over the entities of all texts together; NaN if there are none."""
    pairs = [(entities(found), entities(true)) for found, true in zip(predicted, wanted, strict=True)]
    either = sum(len(found) + len(true) for found, true in pairs)
    return 2.0 * sum(len(found & true) for found, true in pairs) / either if either else math.nan
