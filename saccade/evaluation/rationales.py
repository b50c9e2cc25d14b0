r"""Metrics of rationales against those that people marked: the agreement measures of the ERASER benchmark.

A rationale is what was marked of one document: spans (start, end) of its positions, the end exclusive, or a boolean for
each position. Metrics are shares, not percentages.

Reference:
    DeYoung et al. (2020), arXiv:1911.03429, section 4.1; equal to the benchmark's own program, except that documents
    without a gold rationale have no area under the precision-recall curve.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

Span = tuple[int, int]
"""Positions start, ..., end - 1 of a document."""

Marked = Sequence[Span] | Sequence[bool] | NDArray[np.bool_] | Tensor
"""Spans, or a boolean for each position."""

Scores = Sequence[float] | NDArray[np.floating] | Tensor
"""A number for each position of a document, higher where the model finds it more important."""


class RationaleScores(NamedTuple):
    """How far predicted rationales agree with gold ones."""

    precision: float
    recall: float
    f1: float


def token_f1(predicted: Sequence[Marked], gold: Sequence[Marked]) -> RationaleScores:
    r"""Precision, recall and F1 of the marked positions, each averaged over documents.

    .. math:: P_d = \frac{|A_d \cap G_d|}{|A_d|}, \quad R_d = \frac{|A_d \cap G_d|}{|G_d|}, \quad
        F = \frac{1}{D} \sum_d \frac{2 P_d R_d}{P_d + R_d}

    A_d and G_d are the positions of document d in the predicted and in the gold rationale. A ratio with a zero
    denominator is 0, and documents without either rationale are ignored.

    Args:
        predicted: the rationale that a model gives for each document.
        gold: the rationale that people gave.
    """
    _check(predicted, gold)
    rows = []
    for answer, wanted in zip(map(positions_of, predicted), map(positions_of, gold), strict=True):
        if answer or wanted:
            precision, recall = (_share(len(answer & wanted), len(side)) for side in (answer, wanted))
            rows.append((precision, recall, _f1(precision, recall)))
    return RationaleScores(*(sum(column) / len(rows) for column in zip(*rows, strict=True)) if rows else (0.0,) * 3)


def iou_f1(predicted: Sequence[Marked], gold: Sequence[Marked], *, threshold: float = 0.5) -> RationaleScores:
    r"""Precision, recall and F1 of the spans that largely agree with a gold span.

    .. math:: m_d = \#\left\{a \in A_d : \max_{g \in G_d} \frac{|a \cap g|}{|a \cup g|} \ge \theta\right\}, \quad
        P = \frac{1}{D_A} \sum_d \frac{m_d}{|A_d|}, \quad R = \frac{1}{D_G} \sum_d \frac{m_d}{|G_d|}, \quad
        F = \frac{2 P R}{P + R}

    A_d and G_d are the spans of document d; D_A documents have predicted spans, and D_G have gold ones. Adjacent and
    overlapping spans stay apart where spans are given; booleans make one span of each run. As in the benchmark's
    program, F1 is that of the mean precision and the mean recall, and each of several predicted spans may match the
    same gold span, so that the recall can exceed 1.

    Args:
        predicted: the rationale that a model gives for each document.
        gold: the rationale that people gave.
        threshold: the minimum intersection over union that counts as agreement.
    """
    if not 0.0 < threshold <= 1.0:
        raise ValueError(f"threshold must be above 0 and at most 1, got {threshold}.")
    _check(predicted, gold)
    precisions, recalls = [], []
    for answer, wanted in zip(map(spans_of, predicted), map(spans_of, gold), strict=True):
        matched = sum(any(_iou(one, other) >= threshold for other in wanted) for one in answer)
        precisions += [matched / len(answer)] if answer else []
        recalls += [matched / len(wanted)] if wanted else []
    precision, recall = (sum(side) / len(side) if side else 0.0 for side in (precisions, recalls))
    return RationaleScores(precision, recall, _f1(precision, recall))


def auprc(scores: Sequence[Scores], gold: Sequence[Marked]) -> float:
    r"""The area under the precision-recall curve of soft scores, averaged over documents.

    .. math:: \frac{1}{D} \sum_d \sum_n (R_n - R_{n-1}) \frac{P_n + P_{n-1}}{2}, \quad P_0 = 1, \; R_0 = 0

    P_n and R_n are precision and recall of the positions of document d with the n highest different scores. This is the
    benchmark's AUPRC, whose straight lines between the points make it a little higher than `average_precision`.
    Documents without a gold rationale are ignored; NaN if there are no others.

    Args:
        scores: for each document, a number for each position.
        gold: the rationale that people gave.
    """

    def area(precision: NDArray[np.float64], recall: NDArray[np.float64]) -> float:
        return float(np.trapezoid(np.append(1.0, precision), np.append(0.0, recall)))

    return _mean_over_documents(scores, gold, area)


def average_precision(scores: Sequence[Scores], gold: Sequence[Marked]) -> float:
    r"""The average precision of soft scores, averaged over documents.

    .. math:: \frac{1}{D} \sum_d \sum_n (R_n - R_{n-1}) P_n

    P_n and R_n are precision and recall of the positions of document d with the n highest different scores. Documents
    without a gold rationale are ignored; NaN if there are no others.

    Args:
        scores: for each document, a number for each position.
        gold: the rationale that people gave.
    """
    return _mean_over_documents(scores, gold, lambda precision, recall: float(np.diff(recall, prepend=0.0) @ precision))


def highest(scores: Scores, share: float) -> NDArray[np.bool_]:
    """The hard rationale of soft scores: a boolean for each position, True for this share with the highest scores.

    At least one position is kept, and the first of equal ones.

    Args:
        scores: a number for each position of a document.
        share: how much of the document is kept, usually the mean share that people marked.
    """
    if not 0.0 < share <= 1.0:
        raise ValueError(f"share must be above 0 and at most 1, got {share}.")
    values = _numbers(scores)
    kept = np.zeros(len(values), dtype=bool)
    kept[np.argsort(-values, kind="stable")[: max(1, round(share * len(values)))]] = True
    return kept


def spans_of(rationale: Marked) -> list[Span]:
    """The different spans of a rationale in their order; of booleans, the runs of True."""
    mask = _mask(rationale)
    if mask is None:
        return sorted({(int(start), int(end)) for start, end in rationale})  # type: ignore[misc] # spans, not a mask
    edges = np.flatnonzero(np.diff(mask.astype(np.int8), prepend=0, append=0))
    return [(int(start), int(end)) for start, end in edges.reshape(-1, 2)]


def positions_of(rationale: Marked) -> set[int]:
    """The positions that a rationale marks."""
    return {place for start, end in spans_of(rationale) for place in range(start, end)}


def _mask(rationale: Marked) -> NDArray[np.bool_] | None:
    """The booleans of a rationale; None if it is spans."""
    if isinstance(rationale, Tensor | np.ndarray):
        mask = rationale.detach().cpu().numpy() if isinstance(rationale, Tensor) else rationale
        if mask.dtype != bool or mask.ndim != 1:
            raise TypeError(f"A rationale as an array has one axis and is bool, got {mask.dtype} {mask.shape}.")
        return mask
    if all(isinstance(each, bool | np.bool_) for each in rationale):
        return np.asarray(rationale, dtype=bool)
    for span in rationale:
        if not isinstance(span, Sequence) or len(span) != 2 or not 0 <= span[0] < span[1]:
            raise ValueError(f"A span is (start, end) with 0 <= start < end, got {span!r:.60}.")
    return None


def _mean_over_documents(
    scores: Sequence[Scores],
    gold: Sequence[Marked],
    area: Callable[[NDArray[np.float64], NDArray[np.float64]], float],
) -> float:
    _check(scores, gold)
    areas = []
    for document, rationale in zip(scores, gold, strict=True):
        values, wanted = _numbers(document), positions_of(rationale)
        if wanted and max(wanted) >= len(values):
            raise ValueError(f"The gold rationale marks position {max(wanted)}, but there are {len(values)} scores.")
        if wanted:
            marked = np.isin(np.arange(len(values)), list(wanted))
            areas.append(area(*_curve(values, marked)))
    return sum(areas) / len(areas) if areas else math.nan


def _curve(values: NDArray[np.float64], marked: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Precision and recall of the highest scores, at each different score."""
    order = np.argsort(-values, kind="stable")
    last = np.append(np.diff(values[order]) != 0.0, True)  # of several equal scores
    hits = np.cumsum(marked[order])[last]
    return hits / (np.flatnonzero(last) + 1.0), hits / marked.sum()


def _numbers(scores: Scores) -> NDArray[np.float64]:
    values = np.asarray(scores.detach().cpu() if isinstance(scores, Tensor) else scores, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError("The scores of a document are one finite number for each position.")
    return values


def _iou(one: Span, other: Span) -> float:
    common = max(0, min(one[1], other[1]) - max(one[0], other[0]))
    return common / (one[1] - one[0] + other[1] - other[0] - common)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _f1(precision: float, recall: float) -> float:
    return 2.0 * precision * recall / (precision + recall) if precision and recall else 0.0


def _check(predicted: Sequence[object], gold: Sequence[object]) -> None:
    if len(predicted) != len(gold):
        raise ValueError(f"There are {len(predicted)} predicted and {len(gold)} gold rationales: give as many of each.")
