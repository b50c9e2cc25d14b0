"""Turns the hypotheses of a search into answers, with what each part attended to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from saccade.data.special import EOS, NAMES
from saccade.decoders import Origins
from saccade.encoders import EncoderOutput, Layout
from saccade.evaluation import Figure
from saccade.evaluation.alignment import score_alignments
from saccade.fields import Field, Text, plain
from saccade.interpretation.alignments import align, merge_words, read_pharaoh
from saccade.models import EncoderDecoder
from saccade.search import Hypothesis
from saccade.tasks.answers import Answer, Attended, GeneratedText
from saccade.tasks.base import Example, rounded
from saccade.tasks.generation.extension import Extension
from saccade.tasks.generation.forced_alignment import AlignedPair
from saccade.tasks.generation.origins import told


def answer_of(
    inputs: Mapping[str, Field],
    target: Text,
    example: Example,
    lengths: Sequence[int],
    hypotheses: Sequence[Hypothesis],
    layout: Layout | None = None,
    *,
    extension: Extension | None = None,
    origins: Sequence[Origins] | None = None,
) -> GeneratedText:
    """The best hypothesis, with all of them if there are several.

    Args:
        inputs, target: the fields of the task.
        example: the values of the inputs.
        lengths: how many positions the model made of each.
        hypotheses: the best first.
        layout: which source each position belongs to, if the model reads several.
        extension: the vocabulary that the example extends, if its words can be copied.
        origins: where the tokens of each hypothesis came from, if words can be produced in several ways.
    """
    tokeniser = target.tokeniser
    extra = () if extension is None else extension.extra
    known = {role: _positions(f, example[role], n) for (role, f), n in zip(inputs.items(), lengths, strict=True)}
    spelt, places = next(iter(known.values()))
    if origins is not None:  # with unknown words as the source spells them
        role, field = next(iter(inputs.items()))
        spelt = field.position_names(example[role], lengths[0])
    answers: list[Answer] = []
    for number, h in enumerate(hypotheses):
        pieces = tokeniser.pieces(h.tokens, extra)
        steps = [*pieces, *([NAMES[EOS]] if h.finished else [])]
        looked: dict[str, Attended] = {}
        if h.weights is not None:
            parts = [h.weights] if layout is None else [part[0] for part in layout.split(h.weights[None])]
            for (role, (keys, words)), weights in zip(known.items(), parts, strict=True):
                own = weights[: len(steps), : len(keys)].cpu()
                looked[role] = Attended(own, steps, keys, tokeniser.group(pieces), words)
        first, *others = looked or [None]
        text = tokeniser.decode(h.tokens, extra)
        made = GeneratedText(
            text,
            h.score,
            None if first is None else looked[first],
            tokens=list(h.tokens),
            finished=h.finished,
            log_prob=h.log_prob,
            others={role: looked[role] for role in others if role is not None},
            origins=None if origins is None else told(origins[number], steps, spelt, places),
        )
        answers.append(made)
    best = answers[0]
    assert isinstance(best, GeneratedText)
    return replace(best, alternatives=answers) if len(answers) > 1 else best


def source_lengths(model: EncoderDecoder, encoded: EncoderOutput, mask: Tensor) -> list[list[int]]:
    """How many positions the model made of each source of each example."""
    layout = getattr(encoded, "layout", None)
    if layout is None:
        return [[length] for length in model.positions(mask).tolist()]
    lengths: list[list[int]] = torch.stack([each.sum(1) for each in layout.masks], dim=1).tolist()
    return lengths


def layout_of(encoded: EncoderOutput, row: int) -> Layout | None:
    """The layout of one example, if there are several sources."""
    layout: Layout | None = getattr(encoded, "layout", None)
    return None if layout is None else layout.row(row)


def _positions(source: Field, value: Any, length: int) -> tuple[list[str], list[list[int]]]:
    """Names of the positions that the model read, and which of them make words."""
    source = plain(source)
    if value is None:
        return [], []
    if not isinstance(source, Text):
        return source.position_names(value, length), []
    text = source.show(value)
    names = [*source.tokeniser.pieces(source.tokeniser.encode(text))[: length - 1], NAMES[EOS]]
    words = [[place for place in word if place < length - 1] for word in source.tokeniser.words(text)]
    return names, [word for word in words if word]


def alignment_of(answer: Answer, *, subwords: bool = False) -> list[tuple[int, int]]:
    """Which source word each target word attended to most, or which piece each piece.

    The end of the target is left out; a piece may have attended to the end of the source, which is the last piece.
    """
    attention = answer.attention
    if attention is None:
        return []
    if subwords or not attention.key_words:
        return align(attention.weights[: len(getattr(answer, "tokens", []))])
    return align(merge_words(attention.weights, attention.key_words, attention.query_words))


def generated_json(answer: Answer, *, attention: bool = True) -> dict[str, Any]:
    """One text in JSON's types."""
    looked = answer.attention
    shown = {"answer": answer.value, "score": answer.score}
    shown |= {name: getattr(answer, name, None) for name in ("log_prob", "finished")}
    origins = getattr(answer, "origins", None)
    if origins is not None:
        shown["origins"] = [origin.as_json() for origin in origins]
    if looked is None or not attention:
        return shown
    shown |= {"queries": looked.queries, "query_words": looked.query_words, "key_words": looked.key_words}
    shown |= {"alignment": alignment_of(answer, subwords=True), "word_alignment": alignment_of(answer)}
    others = getattr(answer, "others", {})
    if others:
        shown["sources"] = {
            role: {"keys": each.keys, "key_words": each.key_words, "weights": rounded(each.weights)}
            for role, each in others.items()
        }
    return {**shown, "weights": rounded(looked.weights)}


def aer(aligned: Sequence[AlignedPair], examples: Sequence[Example]) -> Figure:
    """The alignment error rate under forced decoding of each target, as a percentage."""
    gold = [read_pharaoh(example["alignment"], "The alignment") for example in examples]
    note = "% of links, by forced decoding of the target"
    return Figure(100.0 * score_alignments([each.links for each in aligned], gold).aer, note)
