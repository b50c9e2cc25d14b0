"""The ERASER measures, against loops over positions and spans."""

import math
import random

import numpy as np
import pytest
import torch

from saccade.evaluation.rationales import auprc, average_precision, highest, iou_f1, positions_of, spans_of, token_f1

DOCUMENTS, LENGTH = 23, 31


def some_masks(seed, share=0.3):
    generator = random.Random(seed)
    return [[generator.random() < share for _ in range(LENGTH)] for _ in range(DOCUMENTS)]


def some_scores(seed, levels=7):
    generator = random.Random(seed)
    return [[generator.randrange(levels) / levels for _ in range(LENGTH)] for _ in range(DOCUMENTS)]


def harmonic(precision, recall):
    return 0.0 if precision * recall == 0 else 2 * precision * recall / (precision + recall)


def test_token_scores_are_means_over_documents():
    found, gold = some_masks(1), some_masks(2)
    found[3] = gold[3] = [False] * LENGTH  # ignored
    found[5], gold[7] = [False] * LENGTH, [False] * LENGTH  # 0, not ignored
    rows = []
    for answer, wanted in zip(found, gold, strict=True):
        both = sum(a and w for a, w in zip(answer, wanted, strict=True))
        if any(answer) or any(wanted):
            precision = both / sum(answer) if any(answer) else 0.0
            recall = both / sum(wanted) if any(wanted) else 0.0
            rows.append((precision, recall, harmonic(precision, recall)))
    assert len(rows) == DOCUMENTS - 1
    expected = [sum(row[n] for row in rows) / len(rows) for n in range(3)]
    assert token_f1(found, gold) == pytest.approx(expected)


def test_iou_counts_spans_that_overlap_by_half():
    # One of two spans agrees by 3 / 5, the other by 1 / 7; the second document has no prediction, the third no gold.
    scores = iou_f1([[(2, 6), (11, 13)], [], [(0, 5)]], [[(3, 7), (12, 18)], [(1, 2)], []])
    assert scores == pytest.approx((1 / 4, 1 / 4, 1 / 4))
    assert iou_f1([[(2, 6)]], [[(3, 7)]], threshold=0.61).f1 == 0.0


def test_iou_against_sets_of_positions():
    found, gold = some_masks(3, 0.5), some_masks(4, 0.5)
    matched, precisions, recalls = [], [], []
    for answer, wanted in zip(map(spans_of, found), map(spans_of, gold), strict=True):
        near = 0
        for one in answer:
            ious = [len({*range(*one)} & {*range(*two)}) / len({*range(*one)} | {*range(*two)}) for two in wanted]
            near += max(ious) >= 0.5
        matched.append(near)
        precisions.append(near / len(answer))
        recalls.append(near / len(wanted))
    precision, recall = sum(precisions) / DOCUMENTS, sum(recalls) / DOCUMENTS
    assert sum(matched) > 0
    assert iou_f1(found, gold) == pytest.approx((precision, recall, harmonic(precision, recall)))


def test_areas_follow_every_threshold():
    scores, gold = some_scores(5), some_masks(6)
    trapezia, steps = [], []
    for values, wanted in zip(scores, gold, strict=True):
        before, area, step = (1.0, 0.0), 0.0, 0.0
        for threshold in sorted(set(values), reverse=True):
            kept = [w for v, w in zip(values, wanted, strict=True) if v >= threshold]
            precision, recall = sum(kept) / len(kept), sum(kept) / sum(wanted)
            area += (recall - before[1]) * (precision + before[0]) / 2
            step += (recall - before[1]) * precision
            before = precision, recall
        trapezia.append(area)
        steps.append(step)
    assert auprc(scores, gold) == pytest.approx(sum(trapezia) / DOCUMENTS)
    assert average_precision(scores, gold) == pytest.approx(sum(steps) / DOCUMENTS)


def test_areas_of_perfect_and_constant_scores():
    gold = [[False, True, True, False, False]]
    assert auprc([[0.1, 0.9, 0.8, 0.3, 0.0]], gold) == average_precision([[0.1, 0.9, 0.8, 0.3, 0.0]], gold) == 1.0
    assert average_precision([[0.2] * 5], gold) == pytest.approx(2 / 5)
    assert auprc([[0.2] * 5, [0.3] * 7], [gold[0], []]) == auprc([[0.2] * 5], gold)  # without a rationale
    assert math.isnan(auprc([[0.1, 0.2]], [[]]))


def test_rationales_as_spans_booleans_arrays_and_tensors_are_the_same():
    mask = [False, True, True, False, True]
    for rationale in (mask, np.array(mask), torch.tensor(mask), [(4, 5), (1, 3)], [[1, 3], [4, 5], [1, 3]]):
        assert spans_of(rationale) == [(1, 3), (4, 5)]
        assert positions_of(rationale) == {1, 2, 4}
    assert spans_of([]) == spans_of([False]) == []
    assert spans_of([(1, 3), (3, 5)]) == [(1, 3), (3, 5)]  # given apart, kept apart


def test_hard_rationale_of_soft_scores():
    assert highest([0.1, 0.9, 0.5, 0.5, 0.2], 0.4).tolist() == [False, True, True, False, False]
    assert highest(torch.tensor([0.3, 0.1]), 0.01).tolist() == [True, False]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: token_f1([[True]], []), "1 predicted and 0 gold"),
        (lambda: token_f1([[(3, 3)]], [[(1, 2)]]), r"got \(3, 3\)"),
        (lambda: token_f1([np.zeros(3)], [[(1, 2)]]), "is bool, got float64"),
        (lambda: iou_f1([], [], threshold=0.0), "above 0"),
        (lambda: auprc([[0.1, 0.2]], [[(1, 3)]]), "marks position 2, but there are 2 scores"),
        (lambda: auprc([[0.1, math.nan]], [[(1, 2)]]), "finite"),
        (lambda: highest([0.1], 0.0), "share must be"),
    ],
)
def test_wrong_rationales_are_refused(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
