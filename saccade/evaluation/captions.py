"""Metrics of captions against several references each, as the COCO captioning evaluation computes them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from saccade.evaluation.edits import common_length
from saccade.evaluation.figures import Figure
from saccade.evaluation.references import References, Texts, check_texts, several

ORDER = 4
BETA = 1.2
"""How much more recall counts than precision in ROUGE-L."""
SIGMA = 6.0
"""How fast CIDEr-D falls with the difference of lengths."""
WORD = re.compile(r"\w+(?:['\u2019-]\w+)*")
HOW = "lower case, no punctuation"

Tokens = Sequence[str]
Counts = Counter[tuple[str, ...]]


def words_of(text: str) -> list[str]:
    """The words of a caption: lower case, without punctuation."""
    return WORD.findall(text.lower())


def caption_bleu(predicted: Texts, wanted: References, *, order: int) -> Figure:
    """Corpus BLEU of n-grams up to an order, from 0 to 100; the brevity penalty uses the nearest reference length."""
    value = bleu_of_tokens(*_tokens(predicted, wanted), order=order)
    return Figure(100.0 * value, f"BLEU-{order} of the COCO evaluation, {HOW}")


def rouge_l(predicted: Texts, wanted: References) -> Figure:
    """ROUGE-L: the F-score of the longest common subsequence, mean of all captions, from 0 to 100."""
    value = rouge_l_of_tokens(*_tokens(predicted, wanted))
    return Figure(100.0 * value, f"ROUGE-L of the COCO evaluation (beta {BETA}), {HOW}")


def cider(predicted: Texts, wanted: References) -> Figure:
    """CIDEr-D: the similarity of n-grams, with rare ones counting most, from 0 to 1000, as papers print it.

    Reference:
        Vedantam et al. (2015), arXiv:1411.5726.
    """
    value = cider_of_tokens(*_tokens(predicted, wanted))
    return Figure(100.0 * value, f"CIDEr-D of the COCO evaluation, {HOW}")


def distinct(predicted: Texts, wanted: References, *, order: int) -> Figure:
    """The percentage of distinct n-grams in all captions: low if a model always writes the same.

    Reference:
        Li et al. (2016), arXiv:1510.03055.
    """
    check_texts(predicted, wanted)
    grams = [gram for text in predicted for gram in _grams(words_of(text), order)]
    return Figure(100.0 * len(set(grams)) / max(len(grams), 1), f"% of {order}-grams that differ, {HOW}")


def bleu_of_tokens(predicted: Sequence[Tokens], wanted: Sequence[Sequence[Tokens]], *, order: int) -> float:
    """BLEU of tokens, from 0 to 1."""
    right, guessed = [0] * order, [0] * order
    length = nearest = 0
    for tokens, references in zip(predicted, wanted, strict=True):
        length += len(tokens)
        nearest += min((abs(len(each) - len(tokens)), len(each)) for each in references)[1]
        for n in range(order):
            most: Counts = Counter()
            for each in references:
                most |= Counter(_grams(each, n + 1))
            right[n] += (Counter(_grams(tokens, n + 1)) & most).total()
            guessed[n] += max(0, len(tokens) - n)
    product = math.prod((r + 1e-15) / (g + 1e-9) for r, g in zip(right, guessed, strict=True))  # never 0 / 0
    ratio = (length + 1e-15) / (nearest + 1e-9)
    return product ** (1 / order) * (math.exp(1 - 1 / ratio) if ratio < 1 else 1.0)


def rouge_l_of_tokens(predicted: Sequence[Tokens], wanted: Sequence[Sequence[Tokens]]) -> float:
    """The mean ROUGE-L of tokens, from 0 to 1; precision and recall may be those of different references."""
    total = 0.0
    for tokens, references in zip(predicted, wanted, strict=True):
        common = [(common_length(tokens, each), len(each)) for each in references]
        precision = max(same / max(len(tokens), 1) for same, _ in common)
        recall = max(same / max(size, 1) for same, size in common)
        if precision and recall:
            total += (1 + BETA**2) * precision * recall / (recall + BETA**2 * precision)
    return total / max(len(predicted), 1)


def cider_of_tokens(predicted: Sequence[Tokens], wanted: Sequence[Sequence[Tokens]]) -> float:
    """The mean CIDEr-D of tokens, from 0 to 10; how rare an n-gram is follows from the references."""
    pictures: Counts = Counter()
    for references in wanted:
        pictures.update({gram for each in references for gram in _all_grams(each)})
    total = 0.0
    for tokens, references in zip(predicted, wanted, strict=True):
        own = _rare(tokens, pictures, len(wanted))
        total += sum(_similarity(own, _rare(each, pictures, len(wanted))) for each in references) / len(references)
    return 10.0 * total / max(len(predicted), 1)


class _Rare:
    """The n-grams of a caption, weighted by how rare they are."""

    def __init__(self, length: int) -> None:
        self.grams: list[dict[tuple[str, ...], float]] = [{} for _ in range(ORDER)]
        self.norms = [0.0] * ORDER
        self.length = length


def _rare(tokens: Tokens, pictures: Counts, count: int) -> _Rare:
    found = _Rare(max(0, len(tokens) - 1))  # the COCO evaluation counts pairs of words
    for gram, times in Counter(_all_grams(tokens)).items():
        weight = times * (math.log(count) - math.log(max(1, pictures[gram])))
        found.grams[len(gram) - 1][gram] = weight
        found.norms[len(gram) - 1] += weight**2
    found.norms = [math.sqrt(norm) for norm in found.norms]
    return found


def _similarity(own: _Rare, other: _Rare) -> float:
    closeness = math.exp(-((own.length - other.length) ** 2) / (2 * SIGMA**2))
    total = 0.0
    for n in range(ORDER):
        match = sum(
            min(weight, other.grams[n].get(gram, 0.0)) * other.grams[n].get(gram, 0.0)
            for gram, weight in own.grams[n].items()
        )
        norm = own.norms[n] * other.norms[n]
        total += match / norm if norm else match
    return closeness * total / ORDER


def _grams(tokens: Tokens, order: int) -> list[tuple[str, ...]]:
    return [tuple(tokens[start : start + order]) for start in range(len(tokens) - order + 1)]


def _all_grams(tokens: Tokens) -> list[tuple[str, ...]]:
    return [gram for order in range(1, ORDER + 1) for gram in _grams(tokens, order)]


def _tokens(predicted: Texts, wanted: References) -> tuple[list[list[str]], list[list[list[str]]]]:
    check_texts(predicted, wanted)
    return [words_of(text) for text in predicted], [[words_of(text) for text in several(each)] for each in wanted]
