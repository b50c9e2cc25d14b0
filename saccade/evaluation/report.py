"""All metrics of alignments and attention maps together."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from saccade.evaluation.alignment import AnyLinks, match_and_mass, score_alignments, shift_profile, soft_aer
from saccade.evaluation.attention import agreement, coverage, mean_blur, soft_agreement
from saccade.interpretation.alignments import Link, align

AlignmentFigure = float | dict[int, float]
"""A number, or a number for each offset."""

PERCENT = ("aer", "precision", "recall", "f")
"""The metrics of links that are percentages, as those of texts are."""


def alignment_figures(
    links: Sequence[Sequence[Link]],
    weights: Sequence[Tensor] = (),
    backward: Sequence[Tensor] = (),
    gold: Sequence[AnyLinks] | None = None,
) -> dict[str, AlignmentFigure]:
    """Computes the metrics in `MEANINGS` that the given inputs allow, for people to read.

    Error rates, precision, recall and F are percentages here; `score_alignments` and `soft_aer` return shares.

    Args:
        links: the links of each sentence pair.
        weights: (target, source) of words for each pair.
        backward: (source, target) for each pair, from a model of the other direction.
        gold: the gold links.
    """
    figures: dict[str, AlignmentFigure] = {}
    if gold is not None:
        scores = score_alignments(links, gold)._asdict()
        figures |= {name: 100.0 * value if name in PERCENT else value for name, value in scores.items()}
    if gold is not None and weights:
        matched = match_and_mass(weights, gold)
        profile = shift_profile(weights, gold)
        figures |= {"soft_aer": 100.0 * soft_aer(weights, gold), "match": matched.match, "mass": matched.mass}
        figures["shift"] = max(profile, key=lambda offset: (profile[offset], -abs(offset)))
        figures["shift_profile"] = profile
    if weights:
        covered = [coverage(matrix) for matrix in weights]
        words = max(sum(len(each.totals) for each in covered), 1)
        figures |= {
            "blur": mean_blur(weights),
            "coverage": sum(each.share * len(each.totals) for each in covered) / words,
            "dropped": 100.0 * sum(len(each.dropped) for each in covered) / words,
            "repeated": 100.0 * sum(len(each.repeated) for each in covered) / words,
        }
    if backward:
        there = [(number, link) for number, matrix in enumerate(weights) for link in align(matrix)]
        back = [(number, (s, t)) for number, matrix in enumerate(backward) for t, s in align(matrix)]
        targets = max(sum(map(len, weights)), 1)
        each = zip(weights, backward, strict=True)
        figures["agreement"] = agreement(there, back)  # links of all pairs, numbered
        figures["soft_agreement"] = sum(soft_agreement(f, b) * len(f) for f, b in each) / targets
    return figures
