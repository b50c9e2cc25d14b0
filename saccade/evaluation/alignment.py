"""How near alignments come to those that people made, and attention to alignments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from torch import Tensor

from saccade.interpretation.alignments import Alignment, Link, align

Links = Alignment | Iterable[Link]


class AlignmentScores(NamedTuple):
    """The figures of alignments against gold ones, over all sentence pairs together; shares are from 0 to 1."""

    aer: float
    precision: float
    recall: float
    f: float
    links: int
    """How many links were judged."""


def score_alignments(predicted: Sequence[Links], gold: Sequence[Links]) -> AlignmentScores:
    r"""Alignment error rate, precision, recall and F of links A, against sure links S among possible links P.

    .. math:: \mathrm{AER} = 1 - \frac{|A \cap S| + |A \cap P|}{|A| + |S|}, \quad
        \text{precision} = \frac{|A \cap P|}{|A|}, \quad \text{recall} = \frac{|A \cap S|}{|S|}

    F is the harmonic mean of the two. Where there is nothing to divide by, nothing is wrong: the share is 1.

    Reference:
        Och & Ney (2003), Computational Linguistics 29(1), section 5.

    Args:
        predicted: the links of each sentence pair; possible ones count as links.
        gold: the same for the links that are right; where there are no possible ones, all are sure.
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


def soft_aer(weights: Sequence[Tensor], gold: Sequence[Links]) -> float:
    r"""AER with the weights themselves in place of links, so that nothing is lost by a choice of links.

    .. math:: 1 - \frac{\sum_{S} w + \sum_{P} w}{\sum w + |S|}

    Shapes:
        weights: for each sentence pair (target, source).

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
    """How often attention is greatest on an aligned word, and how much of it is on aligned words, from 0 to 1."""

    match: float
    mass: float
    words: int
    """How many target words have links; the others are left out."""


def match_and_mass(weights: Sequence[Tensor], gold: Sequence[Links]) -> MatchAndMass:
    r"""Means over the target words t that have links A_t.

    .. math:: \text{match} = [\arg\max_j w_{tj} \in A_t], \qquad \text{mass} = \sum_{j \in A_t} w_{tj}

    Of several greatest weights each counts its share. A word that looked nowhere matches nothing.

    Shapes:
        weights: for each sentence pair (target, source), of words.

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


def shift_profile(weights: Sequence[Tensor], gold: Sequence[Links], *, reach: int = 3) -> dict[int, float]:
    """The probability mass if every link pointed so many source words further right, or left if below 0.

    The mass at 0 is `match_and_mass`'s. A peak beside 0 says that the attention is shifted: it knows the right word but
    looks at the neighbour, of which it also gets to know something.

    Shapes:
        weights: for each sentence pair (target, source), of words.

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
    """Where alignments are best read off, and how good they are."""

    name: str
    """Of the attention map: the layer."""
    head: int | None
    """None for the mean over all heads."""
    aer: float
    table: dict[tuple[str, int | None], float]
    """The AER of every choice."""


def choose_head(maps: Mapping[str, Sequence[Tensor]], gold: Sequence[Links]) -> ChosenHead:
    """The layer and head whose greatest weights have the lowest AER on a development set, the mean of heads included.

    Args:
        maps: for each layer the maps of each sentence pair, (heads, target, source) of words.
        gold: the links of the same sentence pairs.
    """
    if not maps:
        raise ValueError("There is no attention to choose from: maps is empty.")
    table: dict[tuple[str, int | None], float] = {}
    for name, several in maps.items():
        _check(several, gold, f"maps of {name!r}")
        for head in (None, *range(several[0].shape[0])):
            links = [align(heads.mean(0) if head is None else heads[head]) for heads in several]
            table[name, head] = score_alignments(links, gold).aer
    name, head = min(table, key=lambda choice: table[choice])
    return ChosenHead(name, head, table[name, head], table)


def _check(given: Sequence[object], gold: Sequence[Links], what: str) -> None:
    if len(given) != len(gold):
        raise ValueError(f"{len(given)} {what} cannot be judged by {len(gold)} gold alignments.")
    if not gold:
        raise ValueError(f"There are no {what} to judge.")


def _gold(links: Links) -> Alignment:
    return links if isinstance(links, Alignment) else Alignment.of(links)


def _all_links(links: Links) -> frozenset[Link]:
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
                f"The link {source}-{target} (from 0) is outside of {sources} source and {targets} target words: are "
                "the gold alignments of these texts, and counted from 0?"
            )
        yield source, target


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 1.0
