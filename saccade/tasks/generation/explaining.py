"""What a model attends to while it writes each text, for the explorer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor, nn

from saccade.data.special import BOS
from saccade.decoders import Origins, shift_right
from saccade.evaluation import CAUTION
from saccade.fields import Text, plain
from saccade.interpretation.alignments import Alignment
from saccade.interpretation.explorer import Item, Map, Measure
from saccade.interpretation.recording import Trace, record
from saccade.interpretation.recording.patterns import matches
from saccade.tasks.answers import Answer, Origin
from saccade.tasks.base import Example, Task
from saccade.tasks.generation.explain_options import ExplainOptions
from saccade.tasks.generation.forced_alignment import HeadChoice
from saccade.tasks.generation.maps import Written, attention_across, in_one_unit, maps_of, text_axis, without_last
from saccade.tasks.generation.measures import (
    attention_measures,
    faithfulness_measures,
    log_probability,
    origin_measure,
    origin_phrase,
    output,
    shares,
    short,
    testable,
    unknown,
)
from saccade.tasks.generation.origins import forced_origins, told
from saccade.tasks.generation.unseen import UnseenSources
from saccade.tasks.generation.writer import writer

CHEAP = 1024
"""The maximum of input positions times output tokens, over all inputs, for testing faithfulness by default."""


def explain(
    task: UnseenSources,
    model: nn.Module,
    examples: Sequence[Example],
    answers: Sequence[Answer] | None,
    **options: Any,
) -> list[Item]:
    """An item for each example: every attention of the model, and measures of its attention to the input."""
    own = {field.name for field in fields(ExplainOptions)}
    asked = ExplainOptions.of({name: value for name, value in options.items() if name in own})
    search = {name: value for name, value in options.items() if name not in own and value is not None}
    forced = ["target" in example for example in examples]
    gold = asked.alignments(len(examples))
    _check(task, model, examples, forced, gold, search)
    if answers is None:
        unforced = [n for n, given in enumerate(forced) if not given]
        found = dict(zip(unforced, task.predict(model, [examples[n] for n in unforced], **search), strict=True))
    else:
        found = dict(enumerate(answers))
    written = [
        Written.forced(task.target, example["target"], task.extension(example)) if given else Written.answered(found[n])
        for n, (example, given) in enumerate(zip(examples, forced, strict=True))
    ]
    rows = [task.encode({role: example[role] for role in task.inputs}) for example in examples]
    faithful = asked.faithfulness
    one = len(task.inputs) == 1
    if faithful is None:
        cost = sum(sum(task.size(row)) * len(each.ids) for row, each in zip(rows, written, strict=True))
        faithful = one and cost <= CHEAP and isinstance(task.source, Text) and testable(model)
    if faithful and not one:
        raise ValueError("faithfulness tests the attention to one source, but this task has several: leave it out.")
    choice = HeadChoice(
        layer=asked.layer, head=asked.head, shift=task.alignment_shift if asked.shift is None else asked.shift
    )
    return [
        (_explain if one else _explain_several)(task, model, *each, choice=choice, asked=asked, faithful=faithful)
        for each in zip(examples, rows, written, gold, strict=True)
    ]


def _check(
    task: UnseenSources,
    model: nn.Module,
    examples: Sequence[Example],
    forced: list[bool],
    gold: Sequence[Any],
    search: dict[str, Any],
) -> None:
    if not examples:
        raise ValueError("There is nothing to explain.")
    if len(gold) != len(examples):
        raise ValueError(f"Give a gold alignment for each input: inputs {len(examples)}, alignments {len(gold)}.")
    for number, (example, given, links) in enumerate(zip(examples, forced, gold, strict=True), start=1):
        if links is not None and (not isinstance(task.source, Text) or len(task.inputs) > 1):
            raise ValueError("Gold links connect the words of two texts, but the source is not a text: omit gold.")
        if links is not None and not given:
            raise ValueError("Gold links connect the words of two texts: give the targets as well.")
        asked = [name for name, value in search.items() if value is not None]
        if given and asked:
            raise ValueError(f"{asked[0]} changes the search, but the targets are given: leave it out.")
        for side, field in {**task.inputs, "target": task.target}.items():
            present = example.get(side) is not None
            if present and isinstance(plain(field), Text) and not field.show(example[side]).strip():
                raise ValueError(f"The {side} of input {number} is empty: there is nothing to look at.")
        most = writer(model).longest_target()
        if given and most is not None and len(task.target_ids(example, task.extension(example))) - 1 > most:
            raise ValueError(
                f"The target of input {number} has more tokens than the {most:,} that the model can write."
            )
    task.options.of(search)
    for number, left in task.truncated(model, examples).items():
        raise ValueError(f"Input {number + 1} has {left}. Split it into sentences.")


def _explain(
    task: UnseenSources,
    model: nn.Module,
    example: Example,
    row: dict[str, Any],
    written: Written,
    gold: Alignment | None,
    *,
    choice: HeadChoice,
    asked: ExplainOptions,
    faithful: bool,
) -> Item:
    value = example["source"]
    if not written.ids:
        raise ValueError(f"The model wrote nothing for {task.source.show(value)!r:.80}: give it a target.")
    batch = _batch(task, model, row, written.ids)
    trace, mean = _forced(task, model, batch)
    across = attention_across(model, trace, batch, written)
    if not across:
        raise ValueError(f"{type(model).__name__} has no attention, so there is nothing to show.")
    read = task.source.axis(value, next(iter(across.values())).shape[-1])
    if gold is not None and isinstance(task.source, Text):
        read = text_axis(read.names, task.source.tokeniser.words(task.source.show(value)), gold)
    read, said = in_one_unit(read, text_axis(written.pieces, written.words, gold))
    origins = _origins(task, model, batch, written, read.names, value)
    if origins is not None:
        said = replace(said, origins=list(map(origin_phrase, origins)))
    shown = maps_of(model, trace, across, read, said, choice.shift)
    maps = [each for each in shown if matches(each.name, asked.keep)]
    if not maps:
        raise ValueError(f"keep={asked.keep!r} fits none of {', '.join(each.name for each in shown)}.")
    measures = [output(written.text, written.given), log_probability(mean), *unknown(task.lost(example, written.ids))]
    if isinstance(task.source, Text):
        sides = task.source.tokeniser.words(task.source.show(value)), written.words
        measures += attention_measures(across, sides, choice, gold)
    if faithful:
        words = [each[0] for each in task.words_of(batch).values()]
        measures += faithfulness_measures(writer(model), batch["source"][0], batch["target"][0], *words)
    measures += [] if origins is None else [origin_measure(origins)]
    return _item(short(task.source.show(value)), written, maps, measures, asked, gold)


@torch.no_grad()
def _origins(
    task: UnseenSources,
    model: nn.Module,
    batch: dict[str, Tensor],
    written: Written,
    keys: Sequence[str],
    value: Any,
) -> list[Origin] | None:
    """Where the words came from; None if the model only generates words."""
    model = writer(model)
    if not model.head.cued:
        return None
    was_training = model.training
    model.eval()
    try:
        encoded = model.encode(batch["source"], batch["source_mask"], **task.words_of(batch))
        found = forced_origins(model, encoded, batch["target"])
    finally:
        model.train(was_training)
    assert found is not None
    alone = Origins(found.ways, found.shares[0].cpu(), found.places[0].cpu())
    return told(alone, written.pieces, keys, task.source.words(value))


def _explain_several(
    task: UnseenSources,
    model: nn.Module,
    example: Example,
    row: dict[str, Any],
    written: Written,
    gold: Alignment | None,
    *,
    choice: HeadChoice,
    asked: ExplainOptions,
    faithful: bool,
) -> Item:
    """A map for each source that is not missing."""
    values = {role: field.show(example[role]) for role, field in task.inputs.items() if example[role] is not None}
    given = " | ".join(map(short, values.values()))
    if not written.ids:
        raise ValueError(f"The model wrote nothing for {given!r:.80}: give it a target.")
    batch = _batch(task, model, row, written.ids)
    _, mean = _forced(task, model, batch)
    looked = _by_source(task, model, batch)
    if not looked:
        raise ValueError(f"{type(model).__name__} has no attention, so there is nothing to show.")
    shown = []
    for role in values:
        whole = text_axis(written.pieces, written.words, None)
        read, said = in_one_unit(task.inputs[role].axis(example[role], looked[role].shape[-1]), whole)
        rows, weights = without_last(said) if choice.shift else said, looked[role][None, choice.shift :]
        shown.append(Map(name=role, weights=weights, queries=rows, keys=read, sides=("output", role)))
    maps = [each for each in shown if matches(each.name, asked.keep)]
    if not maps:
        raise ValueError(f"keep={asked.keep!r} fits none of {', '.join(each.name for each in shown)}.")
    measures = [
        output(written.text, written.given),
        log_probability(mean),
        shares({role: looked[role] for role in values}),
        *unknown(task.lost(example, written.ids)),
    ]
    return _item(given, written, maps, measures, asked, None)


def _item(
    given: str,
    written: Written,
    maps: list[Map],
    measures: list[Measure],
    asked: ExplainOptions,
    gold: Alignment | None,
) -> Item:
    title = f"{given} → {short(written.text)}"
    return Item(
        title=title if asked.name is None else f"{asked.name}: {title}",
        maps=maps,
        measures=[*measures, Measure(name="caution", value="", meaning=CAUTION)],
        links=None if gold is None else sorted(gold.possible),
    )


@torch.no_grad()
def _by_source(task: UnseenSources, model: nn.Module, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """(steps, positions) of each source while the model writes the target; nothing without attention."""
    model, was_training = writer(model), model.training
    model.eval()
    try:
        source, mask, *others = task.sources_of(batch)
        encoded: Any = model.encode(source, mask, *others)
        decoded = model.decoder(encoded, shift_right(batch["target"], BOS))
    finally:
        model.train(was_training)
    if decoded.weights is None:
        return {}
    parts = encoded.layout.split(decoded.weights)
    lengths = [int(each.sum()) for each in encoded.layout.masks]
    several = zip(task.inputs, parts, lengths, strict=True)
    return {role: part[0, :, :length].float().cpu() for role, part, length in several}


def _batch(task: Task, model: nn.Module, row: dict[str, Any], target: list[int]) -> dict[str, Tensor]:
    device = next(model.parameters()).device
    return {name: tensor.to(device) for name, tensor in task.collate([{**row, "target": target}]).items()}


@torch.no_grad()
def _forced(task: Task, model: nn.Module, batch: dict[str, Tensor]) -> tuple[Trace, float]:
    """All attention while the model writes the target, and the mean log-probability of the target's tokens."""
    was_training = model.training
    model.eval()
    try:
        with record(model) as trace:
            loss = task.loss(model, batch)
    finally:
        model.train(was_training)
    return trace, -float(loss.total) / float(loss.count)
