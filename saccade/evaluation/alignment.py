"""Metrics of alignments and attention against human alignments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from torch import Tensor

from saccade.interpretation.alignments import Alignment, Link, align

AnyLinks = Alignment | Iterable[Link]


class AlignmentScores(NamedTuple):
    """Metrics of alignments against gold alignments, over all sentence pairs, as shares from 0 to 1."""

    aer: float
    precision: float
    recall: float
    f: float
    links: int
    """The number of predicted links."""


def score_alignments(predicted: Sequence[AnyLinks], gold: Sequence[AnyLinks]) -> AlignmentScores:
    r"""Alignment error rate, precision, recall and F of links A, against sure links S among possible links P.

    .. math:: \mathrm{AER} = 1 - \frac{|A \cap S| + |A \cap P|}{|A| + |S|}, \quad
        \text{precision} = \frac{|A \cap P|}{|A|}, \quad \text{recall} = \frac{|A \cap S|}{|S|}

    F is the harmonic mean of precision and recall. A ratio with a zero denominator is 1, since nothing is wrong.

    Reference:
        Och & Ney (2003), Computational Linguistics 29(1), section 5.

    Args:
        predicted: the links of each sentence pair; possible links count as links.
        gold: the gold links of each sentence pair; if none are marked as possible, all are sure.
    """
    _check(predicted, gold, "predicted alignments")
    found = sure = found_sure = found_possible = 0
    for links, right in zip(predicted, gold, strict=True):
        answer, wanted = _all_links(links), _gold(right)
        found += len(answer)
        sure += len(wanted.sure)
        found_sure += len(answer & wanted.sure)
        found_possible += len(answer & wanted.possible)
    precision, recall = _share(found_possible, found), _share(found_sure, sure)
    return AlignmentScores(
        aer=1 - _share(found_sure + found_possible, found + sure),
        precision=precision,
        recall=recall,
        f=2 * precision * recall / (precision + recall) if precision + recall else 0.0,
        links=found,
    )


def soft_aer(weights: Sequence[Tensor], gold: Sequence[AnyLinks]) -> float:
    r"""AER computed on the weights instead of links, so that it does not depend on how links are extracted; a share.

    .. math:: 1 - \frac{\sum_{S} w + \sum_{P} w}{\sum w + |S|}

    Shapes:
        weights: (target, source) for each sentence pair.

    Reference:
        Tu et al. (2016), arXiv:1601.04811, section 5.1.
    """
    _check(weights, gold, "attention maps")
    on_sure = on_possible = total = 0.0
    sure = 0
    for matrix, right in zip(weights, gold, strict=True):
        wanted = _gold(right)
        on_sure += _on(matrix, wanted.sure)
        on_possible += _on(matrix, wanted.possible)
        total += float(matrix.sum())
        sure += len(wanted.sure)
    return 1 - _share(on_sure + on_possible, total + sure)


class MatchAndMass(NamedTuple):
    """How often the largest weight is on an aligned word, and how much weight is on aligned words, from 0 to 1."""

    match: float
    mass: float
    words: int
    """The number of target words with links; the others are ignored."""


def match_and_mass(weights: Sequence[Tensor], gold: Sequence[AnyLinks]) -> MatchAndMass:
    r"""Means over the target words t that have links A_t.

    .. math:: \text{match} = [\arg\max_j w_{tj} \in A_t], \qquad \text{mass} = \sum_{j \in A_t} w_{tj}

    Ties for the largest weight share the credit. A word without any weight matches nothing.

    Shapes:
        weights: (target, source) of words for each sentence pair.

    Reference:
        Koehn & Knowles (2017), arXiv:1706.03872, section 3.5.
    """
    _check(weights, gold, "attention maps")
    match = mass = 0.0
    words = 0
    for matrix, right in zip(weights, gold, strict=True):
        for target, sources in _by_target(_all_links(right), matrix).items():
            row = matrix[target]
            words += 1
            mass += sum(float(row[source]) for source in sources)
            greatest = (row == row.max()) & (row > 0)
            match += float(greatest[list(sources)].sum()) / max(int(greatest.sum()), 1)
    return MatchAndMass(match / max(words, 1), mass / max(words, 1), words)


def shift_profile(weights: Sequence[Tensor], gold: Sequence[AnyLinks], *, reach: int = 3) -> dict[int, float]:
    """The probability mass if every link is shifted to the right by each offset (to the left if negative).

    The mass at 0 is that of `match_and_mass`. A peak away from 0 means that the attention is shifted: the model finds
    the right word through its neighbour, which also contains information about it.

    Shapes:
        weights: (target, source) of words for each sentence pair.

    Reference:
        Koehn & Knowles (2017), arXiv:1706.03872, section 3.5, on German-English.
    """
    _check(weights, gold, "attention maps")
    if reach < 0:
        raise ValueError(f"reach must be 0 or more words, got {reach}.")
    totals, words = dict.fromkeys(range(-reach, reach + 1), 0.0), 0
    for matrix, right in zip(weights, gold, strict=True):
        for target, sources in _by_target(_all_links(right), matrix).items():
            words += 1
            for offset in totals:
                moved = [source + offset for source in sources if 0 <= source + offset < matrix.shape[1]]
                totals[offset] += sum(float(matrix[target, source]) for source in moved)
    return {offset: total / max(words, 1) for offset, total in totals.items()}


class ChosenHead(NamedTuple):
    """The layer and head that align best, and how well they do; error rates are shares, from 0 to 1."""

    name: str
    """The name of the attention map: the layer."""
    head: int | None
    """None for the mean over all heads."""
    aer: float
    table: dict[tuple[str, int | None], float]
    """The AER of every candidate."""


def choose_head(maps: Mapping[str, Sequence[Tensor]], gold: Sequence[AnyLinks]) -> ChosenHead:
    """The layer and head (or mean of heads) whose largest weights have the lowest AER on a development set.

    Args:
        maps: for each layer, the map of each sentence pair, (heads, target, source) of words.
        gold: the gold links of the same sentence pairs.
    """
    if not maps:
        raise ValueError("maps is empty: there is no attention to choose from.")
    table: dict[tuple[str, int | None], float] = {}
    for name, several in maps.items():
        _check(several, gold, f"maps of {name!r}")
        for head in (None, *range(several[0].shape[0])):
            links = [align(heads.mean(0) if head is None else heads[head]) for heads in several]
            table[name, head] = score_alignments(links, gold).aer
    name, head = min(table, key=lambda choice: table[choice])
    return ChosenHead(name, head, table[name, head], table)


def _check(given: Sequence[object], gold: Sequence[AnyLinks], what: str) -> None:
    if len(given) != len(gold):
        raise ValueError(f"{len(given)} {what} cannot be compared with {len(gold)} gold alignments.")
    if not gold:
        raise ValueError(f"There are no {what} to evaluate.")


def _gold(links: AnyLinks) -> Alignment:
    return links if isinstance(links, Alignment) else Alignment.of(links)


def _all_links(links: AnyLinks) -> frozenset[Link]:
    return links.possible if isinstance(links, Alignment) else frozenset(links)


def _on(weights: Tensor, links: Iterable[Link]) -> float:
    return sum(float(weights[target, source]) for source, target in _inside(links, weights))


def _by_target(links: Iterable[Link], weights: Tensor) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for source, target in _inside(links, weights):
        found.setdefault(target, []).append(source)
    return found


def _inside(links: Iterable[Link], weights: Tensor) -> Iterable[Link]:
    targets, sources = weights.shape
    for source, target in links:
        if source >= sources or target >= targets:
            raise ValueError(
                f"The link {source}-{target} (from 0) is outside the {sources} source and {targets} target words: do "
                "the gold alignments belong to these texts, and are they counted from 0?"
            )
        yield source, target


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 1.0
