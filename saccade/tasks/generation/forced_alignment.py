"""Forced decoding: how a model aligns two given texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from saccade.checks import check_count
from saccade.data.special import BOS
from saccade.data.tokenisers import Tokeniser
from saccade.decoders import shift_right
from saccade.evaluation import choose_head
from saccade.fields import Text
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
from saccade.interpretation.source import attention_maps
from saccade.registry import nearest
from saccade.tasks.base import Example, Task
from saccade.tasks.generation.posteriors import sums_alignments
from saccade.tasks.generation.sides import WORDS
from saccade.tasks.generation.unseen import UnseenSources
from saccade.tasks.generation.writer import writer

Extract = Literal["max", "threshold", "mutual"]
EXTRACTIONS: tuple[Extract, ...] = ("max", "threshold", "mutual")

NOTHING = "nothing"
"""Stands for a layer if no pair of texts could be aligned, so that no layer is known."""

Pair = tuple[str, str]
"""A source text and a target text."""


@dataclass(frozen=True)
class HeadChoice:
    """Which of a model's attentions to read alignments from.

    Args:
        layer: counted from 0 among those that attend to the source, or from -1 backwards.
        head: counted from 0; None is the mean over all heads.
        shift: 0 reads a target word at the step that writes it, 1 at the next step, when the model has just written
            it; the latter is often better for Transformers (Chen et al., 2020, arXiv:2004.14837).
    """

    layer: int = -1
    head: int | None = None
    shift: int = 0

    def __post_init__(self) -> None:
        if self.shift not in (0, 1):
            raise ValueError(f"shift must be 0 or 1, got {self.shift}.")


class AlignedPair(NamedTuple):
    """Which words of two texts are aligned."""

    source: list[str]
    target: list[str]
    links: list[Link]
    """(source, target), counted from 0, in the order of the target."""
    weights: Tensor
    """(target, source): what the links were read from."""
    backward: Tensor | None = None
    """(source, target), from a model of the other direction, if there is one."""


def align_pairs(
    task: Task,
    model: nn.Module,
    pairs: Sequence[Pair],
    *,
    choice: HeadChoice | None = None,
    extract: Extract = "max",
    threshold: float = 0.2,
    sink: Sink = "drop",
    subwords: bool = False,
    reverse: tuple[Task, nn.Module] | None = None,
    reverse_choice: HeadChoice | None = None,
    method: Method = "grow-diag-final-and",
    batch_size: int = 32,
) -> list[AlignedPair]:
    """The alignment of each pair of texts, from the model's attention to the source under forced decoding of the
    target.

    Words are separated by spaces, as in `text.split()`. A text without words, or with more tokens than the model has
    positions, has no links.

    Args:
        task: a generation task from text to text, after `fit`.
        model: with attention, or with alignments of another kind.
        pairs: source and target texts.
        choice: the layer, head and step to read; by default the last layer, the mean of its heads, and the step that
            the run was trained for (`alignment_shift`).
        extract: "max" links each target word to the source word it attends to most, "threshold" to all it attends to
            with at least `threshold`, "mutual" to those that attend to each other most.
        threshold: of `extract="threshold"`.
        sink: what happens to attention to the end of the sentence: see `merge_words`.
        subwords: align pieces instead of words.
        reverse: task and model of the other direction, to symmetrise with.
        reverse_choice: the layer, head and step to read of that one.
        method: how the two directions are symmetrised.
        batch_size: how many pairs are aligned together.
    """
    choice = choice or usual_choice(task)
    if extract not in EXTRACTIONS:
        raise ValueError(f"Unknown extraction {extract!r}.{nearest(extract, EXTRACTIONS)}")
    if extract == "threshold" and not 0 < threshold <= 1:
        raise ValueError(f"threshold must be above 0 and at most 1, as weights are, got {threshold}.")
    if reverse is not None and subwords:
        raise ValueError("Two models have different pieces: align words (subwords=False) to symmetrise them.")
    options: dict[str, Any] = {"sink": sink, "subwords": subwords, "batch_size": batch_size}
    forward = [read_head(maps, choice) for maps in word_maps(task, model, pairs, shift=choice.shift, **options)]
    backward: list[Tensor | None] = [None] * len(pairs)
    if reverse is not None:
        turned = [(target, source) for source, target in pairs]
        reverse_choice = reverse_choice or usual_choice(reverse[0])
        shift = reverse_choice.shift
        backward = [read_head(maps, reverse_choice) for maps in word_maps(*reverse, turned, shift=shift, **options)]

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
        found.append(AlignedPair(*names, links(weights, back), weights, back))
    return found


def usual_choice(task: Task) -> HeadChoice:
    """How a run's attention is read by default."""
    return HeadChoice(shift=task.alignment_shift if isinstance(task, UnseenSources) else 0)


def best_choice(
    task: Task,
    model: nn.Module,
    pairs: Sequence[Pair],
    gold: Sequence[Alignment],
    *,
    sink: Sink = "drop",
    batch_size: int = 32,
) -> tuple[HeadChoice, float]:
    """The layer, head and step whose alignments have the lowest AER on pairs with known links; and it, as a share."""
    table: dict[tuple[int, int | None, int], float] = {}
    for shift in (0, 1):
        several = list(word_maps(task, model, pairs, sink=sink, shift=shift, batch_size=batch_size))
        names = list(several[0]) if several else []
        if names in ([], [NOTHING]):
            raise ValueError("The attention cannot be chosen: no pair of texts could be aligned.")
        of_layer = {name: [maps[name] for maps in several] for name in names}
        for (name, head), aer in choose_head(of_layer, gold).table.items():
            table[names.index(name), head, shift] = aer
    best = min(table, key=lambda choice: table[choice])
    return HeadChoice(*best), table[best]


def word_maps(
    task: Task,
    model: nn.Module,
    pairs: Sequence[Pair],
    *,
    sink: Sink = "drop",
    shift: int = 0,
    subwords: bool = False,
    batch_size: int = 32,
) -> Iterator[dict[str, Tensor]]:
    """Every head's attention between the words of each pair, in order: {layer: (heads, target words, source words)}.

    Maps are zero for pairs that cannot be aligned.
    """
    source_tokeniser, _ = tokenisers_of(task)
    check_count("batch_size", batch_size)
    assert isinstance(task, UnseenSources)
    examples: list[Example] = [{"source": source, "target": target} for source, target in pairs]
    rows = [task.encode(example) for example in examples]
    ids = [(row["source"][:-1], row["target"][:-1]) for row in rows]
    left_out = set(too_long(task, model, pairs))
    fitting = [number for number, pair in enumerate(ids) if all(pair) and number not in left_out]
    order = sorted(fitting, key=lambda number: -max(map(len, ids[number])))  # similar lengths together
    found: dict[int, dict[str, Tensor]] = {}
    for start in range(0, len(order), batch_size):
        numbers = order[start : start + batch_size]
        maps = forced_maps(model, task.collate([rows[number] for number in numbers]))
        if not maps:
            raise ValueError(f"{type(model).__name__} does not attend to its source: it has no alignments.")
        for row, number in enumerate(numbers):
            found[number] = {name: weights[row].cpu() for name, weights in maps.items()}
    names = list(next(iter(found.values()), {NOTHING: None}))
    heads = {name: next(iter(found.values()))[name].shape[0] if found else 1 for name in names}
    for number, ((source, _), (source_ids, target_ids)) in enumerate(zip(pairs, ids, strict=True)):
        words = (
            ([[place] for place in range(len(source_ids))], [[place] for place in range(len(target_ids))])
            if subwords
            else (source_tokeniser.words(source), task.target_words(examples[number], task.extension(examples[number])))
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
def forced_maps(model: nn.Module, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """(batch, heads, steps, positions) of each layer, under forced decoding of the targets of a batch."""
    device = next(model.parameters()).device
    source, mask, target, real = (batch[n].to(device) for n in ("source", "source_mask", "target", "target_mask"))
    before = shift_right(target, BOS)
    was_training = model.training
    model.eval()
    try:
        if sums_alignments(model):  # it knows p(alignment | both texts), which is more
            alignment = model.alignment(source, mask, before, target, real)
            return {"alignment": alignment.marginals[:, None, :, : source.shape[1]]}
        words = batch[WORDS].to(device) if WORDS in batch else None
        return attention_maps(model, source, mask, before, words)
    finally:
        model.train(was_training)


def tokenisers_of(task: Task) -> tuple[Tokeniser, Tokeniser]:
    """The tokenisers of source and target; raises unless both are texts."""
    if not isinstance(task, UnseenSources) or not isinstance(task.source, Text) or len(task.inputs) > 1:
        raise TypeError(f"Word alignments need two texts, and this {type(task).__name__} task does not have them.")
    return task.source.tokeniser, task.target.tokeniser


def too_long(task: Task, model: nn.Module, pairs: Sequence[Pair]) -> list[int]:
    """The numbers of the pairs, counted from 0, with more tokens than the model has positions."""
    limits = writer(model).longest_source(), writer(model).longest_target()
    return [
        number
        for number, pair in enumerate(pairs)
        if any(
            most is not None and len(tokeniser.encode(text)) > most
            for tokeniser, text, most in zip(tokenisers_of(task), pair, limits, strict=True)
        )
    ]


def read_head(maps: dict[str, Tensor], choice: HeadChoice) -> Tensor:
    """(target, source): one head, or the mean of all, from the (heads, target, source) of each layer."""
    layers = list(maps.values())
    if list(maps) == [NOTHING]:
        return layers[0].mean(0)
    if not -len(layers) <= choice.layer < len(layers):
        raise ValueError(f"layer must be from 0 to {len(layers) - 1}, or -1 for the last, got {choice.layer}.")
    heads = layers[choice.layer]
    if choice.head is None:
        return heads.mean(0)
    if not 0 <= choice.head < len(heads):
        raise ValueError(f"head must be from 0 to {len(heads) - 1}, got {choice.head}.")
    return heads[choice.head]


def _names(task: Task, source: str, target: str, subwords: bool) -> tuple[list[str], list[str]]:
    if not subwords:
        return source.split(), target.split()
    sides = zip(tokenisers_of(task), (source, target), strict=True)
    first, second = (tokeniser.pieces(tokeniser.encode(text)) for tokeniser, text in sides)
    extension = task.extension({"source": source}) if isinstance(task, UnseenSources) else None
    return first, second if extension is None else extension.pieces(extension.encode(target))
