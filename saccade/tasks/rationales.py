"""Rationales: what a model picked or attended to in a text, compared with what people marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from saccade.data.cell import Cell
from saccade.evaluation.figures import Figure
from saccade.evaluation.rationales import auprc, highest, iou_f1, positions_of, token_f1
from saccade.fields import Boxes, Evidence, Field, Image
from saccade.interpretation.explorer import Map, Measure, TextAxis, passages
from saccade.registry import nearest
from saccade.tasks.answers import Answer, Attended
from saccade.tasks.base import Example, Task
from saccade.tasks.pointing import BOXES

EVIDENCE = "evidence"
"""The role of the column that says what people marked in an input."""

KEPT = "How many words the model picked. It answered from these alone: it did not read the others."
AGREED = (
    "How far these words agree with those that people marked: the harmonic mean of precision and recall. A model may "
    "have good reasons that people did not mark, and need not use all of theirs."
)


def extras(inputs: Mapping[str, Field], evidence: Field | str) -> dict[str, Field]:
    """The field of the evidence and, for pictures, that of the boxes, unless an input has its name."""
    made = Evidence() if evidence == EVIDENCE else evidence
    if not isinstance(made, Evidence):
        raise ValueError(f"evidence must be the field evidence, got {evidence!r}.")
    if made.input is not None and made.input not in inputs:
        raise ValueError(f"evidence.input={made.input!r} is not an input.{nearest(made.input, inputs)}")
    boxes = {BOXES: Boxes()} if any(isinstance(field, Image) for field in inputs.values()) else {}
    return {role: field for role, field in {EVIDENCE: made, **boxes}.items() if role not in inputs}


def marked_input(task: Task) -> str:
    """The role of the input that people marked."""
    field = task.extras.get(EVIDENCE)
    named = field.input if isinstance(field, Evidence) else None
    return next(iter(task.inputs)) if named is None else named


def evidence_of(task: Task, example: Example) -> list[tuple[int, int]] | None:
    """What people marked in an input, as spans of its words; None if the example has no such column."""
    field = task.extras.get(EVIDENCE)
    if not isinstance(field, Evidence) or EVIDENCE not in example:
        return None
    role = marked_input(task)
    return field.in_words(example[EVIDENCE], task.inputs[role].show(example[role]))


def check_evidence(task: Task, example: Example, cell: Cell) -> None:
    """Rejects spans beyond the end of the text."""
    try:
        evidence_of(task, example)
    except ValueError as error:
        raise cell.bad(str(error).rstrip("."), "Spans are counted from 0, and their ends are exclusive.") from None


def words_of(task: Task, example: Example, attention: Attended | None) -> list[list[int]]:
    """The positions of each word that a single query attended to; none if there was no such query."""
    if attention is None or attention.role is None:
        return []
    return task.inputs[attention.role].words(example[attention.role], len(attention.keys))


def rationale_of(task: Task, attention: Attended | None, example: Example) -> dict[str, list[str]]:
    """The passages that the model picked, as a detail of its answer; nothing if it reads its whole input."""
    if attention is None or attention.picked is None or attention.role is None:
        return {}
    axis = task.inputs[attention.role].axis(example[attention.role])
    return {"rationale": passages(axis, attention.picked)} if isinstance(axis, TextAxis) else {}


def score_rationales(task: Task, answers: Sequence[Answer], examples: Sequence[Example]) -> dict[str, Figure]:
    """The share of words that a model picked, and how far they agree with those that people marked, if any.

    A model that attends to all words is judged by its most heavily weighted words: as large a share of each text as
    people marked on average.
    """
    seen = [answer.attention for answer in answers]
    hard = all(attention is not None and attention.picked is not None for attention in seen)
    gold = [evidence_of(task, example) for example in examples]
    if not hard and (None in seen or all(spans is None for spans in gold)):
        return {}
    words = [words_of(task, example, attention) for example, attention in zip(examples, seen, strict=True)]
    if not all(words):
        return {}
    figures: dict[str, Figure] = {}
    if hard:
        kept = fmean(fmean(words_picked(a, w)) for a, w in zip(seen, words, strict=True))
        figures["kept"] = Figure(100.0 * kept, "% of the words of a text that the model answers from")
    known = [
        (attention, own, spans)
        for attention, own, spans in zip(seen, words, gold, strict=True)
        if attention is not None and attention.role == marked_input(task) and spans is not None
    ]
    marked = [spans for _, _, spans in known]
    share = fmean(len(positions_of(spans)) / len(own) for _, own, spans in known) if known else 0.0
    if not share:
        return figures
    weights = [word_weights(attention, own) for attention, own, _ in known]
    if hard:
        found: list[Any] = [words_picked(attention, own) for attention, own, _ in known]
        how = "words that the model picked"
    else:
        found = [highest(each, share) for each in weights]
        how = f"the {100.0 * share:.1f} % of words with the largest weights"
    tokens, spans = token_f1(found, marked), iou_f1(found, marked)
    return figures | {
        "token_f1": Figure(tokens.f1, f"{how}, against those that people marked"),
        "token_precision": Figure(tokens.precision, f"{how}: the share that people marked"),
        "token_recall": Figure(tokens.recall, f"{how}: their share of what people marked"),
        "iou_f1": Figure(spans.f1, f"{how}: runs that overlap by half with a marked span"),
        "auprc": Figure(auprc(weights, marked), "of the weights of all words, against those that people marked"),
    }


def words_picked(attention: Attended | None, words: Sequence[Sequence[int]]) -> list[bool]:
    """For each word, whether one of its pieces was picked."""
    picked = set(attention.picked or ()) if attention is not None else set()
    return [not picked.isdisjoint(word) for word in words]


def word_weights(attention: Attended, words: Sequence[Sequence[int]]) -> list[float]:
    """For each word, the sum of the weights of its pieces; 0 for words that the model did not read."""
    row = attention.weights[0].tolist()
    return [sum(row[place] for place in word) for word in words]


def with_evidence(task: Task, maps: list[Map], example: Example) -> list[Map]:
    """The maps, with what people marked in an input added to its axes."""
    spans = evidence_of(task, example)
    if spans is None:
        return maps
    role = marked_input(task)
    main = task.inputs[role]
    marked = positions_of(spans)
    axes: dict[int, Any] = {}
    for axis in (each.keys for each in maps if id(each.keys) not in axes):
        words = main.words(example[role], len(axis))
        if isinstance(axis, TextAxis) and words and axis.names == main.position_names(example[role], len(axis)):
            gold = sorted(place for word in marked for place in words[word])
            axes[id(axis)] = replace(axis, gold=gold)
    return [
        replace(each, keys=axes.get(id(each.keys), each.keys), queries=axes.get(id(each.queries), each.queries))
        for each in maps
    ]


def describe_rationale(task: Task, answer: Answer, example: Example) -> list[Measure]:
    """How many words were picked and, if people marked some, how far both agree."""
    words = words_of(task, example, answer.attention)
    if answer.attention is None or answer.attention.picked is None or not words:
        return []
    picked = words_picked(answer.attention, words)
    measures = [Measure(name="kept", value=f"{sum(picked):,} of {len(picked):,} words", meaning=KEPT)]
    spans = evidence_of(task, example)
    if spans is not None and answer.attention.role == marked_input(task):
        measures.append(Measure(name="token F1", value=token_f1([picked], [spans]).f1, meaning=AGREED))
    return measures
