"""Forced decoding: how a model aligns two texts that are both given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from saccade.checks import check_count
from saccade.data.special import BOS, EOS, PAD
from saccade.decoders import shift_right
from saccade.evaluation import choose_head
from saccade.interpretation.alignments import (
    Alignment,
    Link,
    Method,
    Sink,
    align,
    align_above,
    align_mutual,
    merge_words,
    symmetrise,
)
from saccade.interpretation.interventions import attention_maps
from saccade.registry import nearest

Extract = Literal["max", "threshold", "mutual"]
EXTRACTIONS: tuple[Extract, ...] = ("max", "threshold", "mutual")

NOTHING = "nothing"
"""In place of a layer, where no pair of texts could be aligned, so that no layer is known."""

Pair = tuple[str, str]
"""A source text and a target text."""


@dataclass(frozen=True)
class Reader:
    """Which of a model's attentions alignments are read off.

    Args:
        layer: counted from 0 among those that look at the source, or from -1 backwards.
        head: counted from 0; None is the mean over all heads.
        shift: 0 reads a target word where the model writes it, 1 at the next step, where it is what the model has just
            written; for Transformers the latter is often better (Chen et al., 2020, arXiv:2004.14837).
    """

    layer: int = -1
    head: int | None = None
    shift: int = 0

    def __post_init__(self) -> None:
        if self.shift not in (0, 1):
            raise ValueError(f"shift must be 0 or 1, got {self.shift}.")


class Aligned(NamedTuple):
    """How the words of one pair of texts belong together."""

    source: list[str]
    target: list[str]
    links: list[Link]
    """(source, target), counted from 0, in the order of the target."""
    weights: Tensor
    """(target, source): what the links were read off."""
    backward: Tensor | None = None
    """(source, target), if a model of the other direction was asked too."""


def align_pairs(
    task: Any,
    model: Any,
    pairs: Sequence[Pair],
    *,
    reader: Reader = Reader(),  # noqa: B008 (it is frozen)
    extract: Extract = "max",
    threshold: float = 0.2,
    sink: Sink = "drop",
    subwords: bool = False,
    reverse: tuple[Any, Any] | None = None,
    reverse_reader: Reader = Reader(),  # noqa: B008
    method: Method = "grow-diag-final-and",
    batch_size: int = 32,
) -> list[Aligned]:
    """The alignment of each pair of texts, by how the model looks at the source while it is made to write the target.

    Words stand between spaces, as in `text.split()`; a text without any, or one that is too long for the positions that
    the model has learnt, has no links.

    Args:
        task: a transduction whose tokenisers are learnt.
        model: with attention, or with alignments of another kind.
        pairs: source and target texts.
        reader: the layer, head and step to read.
        extract: "max" links each target word to the source word it looks at most, "threshold" to all that it looks at
            with at least `threshold`, "mutual" those that look at each other most.
        threshold: of `extract="threshold"`.
        sink: what happens to attention to the end of the sentence: see `merge_words`.
        subwords: align pieces instead of words.
        reverse: task and model of the other direction, to symmetrise with.
        reverse_reader: the layer, head and step to read of it.
        method: how the two directions are symmetrised.
        batch_size: how many pairs are aligned together.
    """
    if extract not in EXTRACTIONS:
        raise ValueError(f"Unknown extraction {extract!r}.{nearest(extract, EXTRACTIONS)}")
    if extract == "threshold" and not 0 < threshold <= 1:
        raise ValueError(f"threshold must be above 0 and at most 1, as weights are, got {threshold}.")
    if reverse is not None and subwords:
        raise ValueError("Two models have pieces of their own: align words (subwords=False) to symmetrise them.")
    options: dict[str, Any] = {"sink": sink, "subwords": subwords, "batch_size": batch_size}
    forward = [read_head(maps, reader) for maps in word_maps(task, model, pairs, shift=reader.shift, **options)]
    backward: list[Tensor | None] = [None] * len(pairs)
    if reverse is not None:
        turned = [(target, source) for source, target in pairs]
        shift = reverse_reader.shift
        backward = [read_head(maps, reverse_reader) for maps in word_maps(*reverse, turned, shift=shift, **options)]

    def links(weights: Tensor, back: Tensor | None) -> list[Link]:
        if extract == "mutual":
            return align_mutual(weights, back)
        there = align(weights) if extract == "max" else align_above(weights, threshold)
        if back is None:
            return there
        turned = align(back) if extract == "max" else align_above(back, threshold)
        return symmetrise(there, ((source, target) for target, source in turned), method)

    found = []
    for (source, target), weights, back in zip(pairs, forward, backward, strict=True):
        names = _names(task, source, target, subwords)
        found.append(Aligned(*names, links(weights, back), weights, back))
    return found


def choose_reader(
    task: Any,
    model: Any,
    pairs: Sequence[Pair],
    gold: Sequence[Alignment],
    *,
    sink: Sink = "drop",
    batch_size: int = 32,
) -> tuple[Reader, float]:
    """The layer, head and step whose alignments have the lowest AER on pairs with known links, and this AER."""
    table: dict[tuple[int, int | None, int], float] = {}
    for shift in (0, 1):
        several = list(word_maps(task, model, pairs, sink=sink, shift=shift, batch_size=batch_size))
        names = list(several[0]) if several else []
        if names in ([], [NOTHING]):
            raise ValueError("There is nothing to choose the attention by: no pair of texts could be aligned.")
        of_layer = {name: [maps[name] for maps in several] for name in names}
        for (name, head), aer in choose_head(of_layer, gold).table.items():
            table[names.index(name), head, shift] = aer
    best = min(table, key=lambda choice: table[choice])
    return Reader(*best), table[best]


def word_maps(
    task: Any,
    model: Any,
    pairs: Sequence[Pair],
    *,
    sink: Sink = "drop",
    shift: int = 0,
    subwords: bool = False,
    batch_size: int = 32,
) -> Iterator[dict[str, Tensor]]:
    """Every head's attention between the words of each pair, in order: {layer: (heads, target words, source words)}.

    Of pairs that cannot be aligned, maps are zero.
    """
    if not hasattr(task, "source_tokeniser"):
        raise TypeError(f"Alignments are between two texts, and {type(task).__name__} has no target text.")
    check_count("batch_size", batch_size)
    ids = [(task.source_tokeniser.encode(source), task.target_tokeniser.encode(target)) for source, target in pairs]
    fitting = [number for number, pair in enumerate(ids) if _fits(model, *map(len, pair))]
    order = sorted(fitting, key=lambda number: -max(map(len, ids[number])))  # of like length together
    found: dict[int, dict[str, Tensor]] = {}
    for start in range(0, len(order), batch_size):
        numbers = order[start : start + batch_size]
        maps = forced_maps(model, [ids[number] for number in numbers])
        if not maps:
            raise ValueError(f"{type(model).__name__} does not look at its source: it has no alignments.")
        for row, number in enumerate(numbers):
            found[number] = {name: weights[row].cpu() for name, weights in maps.items()}
    names = list(next(iter(found.values()), {NOTHING: None}))
    heads = {name: next(iter(found.values()))[name].shape[0] if found else 1 for name in names}
    for number, ((source, target), (source_ids, target_ids)) in enumerate(zip(pairs, ids, strict=True)):
        words = (
            ([[place] for place in range(len(source_ids))], [[place] for place in range(len(target_ids))])
            if subwords
            else (task.source_tokeniser.words(source), task.target_tokeniser.words(target))
        )
        if number not in found:
            yield {name: torch.zeros(heads[name], len(words[1]), len(words[0])) for name in names}
            continue
        yield {
            name: merge_words(
                weights[:, shift : shift + len(target_ids), : len(source_ids) + 1].float(), *words, sink=sink
            )
            for name, weights in found.pop(number).items()
        }


@torch.no_grad()
def forced_maps(model: Any, pairs: Sequence[tuple[list[int], list[int]]]) -> dict[str, Tensor]:
    """(batch, heads, steps, length) of each layer, the ends of the sentences included."""
    device = next(model.parameters()).device
    source, target = (
        pad_sequence([torch.tensor([*pair[side], EOS]) for pair in pairs], batch_first=True, padding_value=PAD)
        for side in (0, 1)
    )
    source, target = source.to(device), target.to(device)
    before = shift_right(target, BOS)
    was_training = model.training
    model.eval()
    try:
        if callable(getattr(model, "alignment", None)):  # it knows p(alignment | both texts), which is more
            alignment = model.alignment(source, source != PAD, before, target, target != PAD)
            return {"alignment": alignment.marginals[:, None, :, : source.shape[1]]}
        return attention_maps(model, source, source != PAD, before)
    finally:
        model.train(was_training)


def _fits(model: Any, source: int, target: int) -> bool:
    """Whether there is something to align, and no text is longer than the positions that were learnt."""
    if not source or not target:
        return False
    return _within(source, model.longest_source()) and _within(target, model.longest_target())


def too_long(task: Any, model: Any, pairs: Sequence[Pair]) -> list[int]:
    """The numbers of the pairs, from 0, that have more tokens than the model has learnt positions."""
    encode = task.source_tokeniser.encode, task.target_tokeniser.encode
    most = model.longest_source(), model.longest_target()
    return [
        number
        for number, pair in enumerate(pairs)
        if any(not _within(len(to_ids(text)), limit) for to_ids, text, limit in zip(encode, pair, most, strict=True))
    ]


def _within(length: int, limit: int | None) -> bool:
    return limit is None or length <= limit


def read_head(maps: dict[str, Tensor], reader: Reader) -> Tensor:
    """(target, source) of one head, or of the mean of them, out of (heads, target, source) of each layer."""
    layers = list(maps.values())
    if list(maps) == [NOTHING]:
        return layers[0].mean(0)
    if not -len(layers) <= reader.layer < len(layers):
        raise ValueError(f"layer must be from 0 to {len(layers) - 1}, or -1 for the last, got {reader.layer}.")
    heads = layers[reader.layer]
    if reader.head is None:
        return heads.mean(0)
    if not 0 <= reader.head < len(heads):
        raise ValueError(f"head must be from 0 to {len(heads) - 1}, got {reader.head}.")
    return heads[reader.head]


def _names(task: Any, source: str, target: str, subwords: bool) -> tuple[list[str], list[str]]:
    if not subwords:
        return source.split(), target.split()
    sides = (task.source_tokeniser, source), (task.target_tokeniser, target)
    first, second = (tokeniser.pieces(tokeniser.encode(text)) for tokeniser, text in sides)
    return first, second
