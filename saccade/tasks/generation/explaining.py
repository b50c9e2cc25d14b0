"""What a model looks at while it writes each text, for the explorer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.data.special import BOS, EOS, NAMES
from saccade.evaluation import CAUTION
from saccade.fields import Text
from saccade.interpretation.alignments import FORMATS, Alignment, read_alignments
from saccade.interpretation.explorer import Axis, Item, Map, Measure, TextAxis
from saccade.interpretation.interventions import source_attentions
from saccade.interpretation.recording import Trace, record
from saccade.interpretation.recording.trace import matches
from saccade.registry import nearest
from saccade.tasks.answers import Answer
from saccade.tasks.base import Example, Task
from saccade.tasks.generation.forced_alignment import HeadChoice, forced_maps
from saccade.tasks.generation.measures import (
    attention_measures,
    faithfulness_measures,
    log_probability,
    output,
    short,
    testable,
    unknown,
)
from saccade.tasks.generation.posteriors import sums_alignments
from saccade.tasks.generation.sides import SourceToTarget, writer
from saccade.tasks.options import Options

CHEAP = 1024
"""Input positions times output tokens, over all inputs, up to which faithfulness is tested unasked."""


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(Options):
    """What to show of a generated text.

    Args:
        layer: which layer's attention to the input is measured, from 0, or -1 for the last.
        head: which head is measured, from 0; the mean over all by default.
        shift: 1 reads each word one step later, when it has just been written (default: as the run was trained).
        keep: show only the attentions whose names fit this pattern, for example *cross_attention.
        faithfulness: also test long inputs for whether the model depends on what it looks at, which takes time.
        gold: the file of the links that people made between the words of each input and target, or the links: they are
            shown, and judge the attention.
        gold_format: the format of that file, pharaoh, talp, naacl or json; by default taken from the suffix.
        gold_one_based: words in that file are counted from 1.
        name: of the model, where several are shown side by side.
    """

    layer: int = -1
    head: int | None = None
    shift: int | None = None
    keep: str = "*"
    faithfulness: bool | None = None
    gold: Any = None
    gold_format: str | None = None
    gold_one_based: bool = False
    name: str | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        gold = given.get("gold")
        if gold is None or isinstance(gold, str):
            return super().of(given)
        return replace(super().of({**given, "gold": None}), gold=gold)  # links are no configuration

    def check(self) -> None:
        if self.gold_format is not None and self.gold_format not in FORMATS:
            raise ValueError(f"gold_format: unknown {self.gold_format!r}.{nearest(self.gold_format, FORMATS)}")
        HeadChoice(layer=self.layer, head=self.head, shift=self.shift or 0)

    def alignments(self, count: int) -> list[Alignment | None]:
        """The gold links of each input."""
        if self.gold is None:
            return [None] * count
        if not isinstance(self.gold, str):
            return [links if isinstance(links, Alignment) else Alignment.of(links) for links in self.gold]
        form: Any = self.gold_format
        return list(read_alignments(self.gold, format=form, one_based=self.gold_one_based, sentences=count))


def explain(
    task: SourceToTarget,
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
        _Written.forced(task.target, example["target"]) if given else _Written.answered(found[n])
        for n, (example, given) in enumerate(zip(examples, forced, strict=True))
    ]
    rows = [{"source": task.source.encode(example["source"])} for example in examples]
    faithful = asked.faithfulness
    if faithful is None:
        cost = sum(sum(task.size(row)) * len(each.ids) for row, each in zip(rows, written, strict=True))
        faithful = cost <= CHEAP and isinstance(task.source, Text) and testable(model)
    choice = HeadChoice(
        layer=asked.layer, head=asked.head, shift=task.alignment_shift if asked.shift is None else asked.shift
    )
    return [
        _explain(task, model, *each, choice=choice, asked=asked, faithful=faithful)
        for each in zip(examples, rows, written, gold, strict=True)
    ]


@dataclass(frozen=True)
class _Written:
    """The text that the model wrote, or was made to write."""

    text: str
    ids: list[int]
    pieces: list[str]
    words: list[list[int]]
    given: bool
    weights: Tensor | None = None

    @classmethod
    def answered(cls, answer: Any) -> _Written:
        pieces = answer.attention.queries if answer.attention is not None else []
        words = answer.attention.query_words if answer.attention is not None else []
        ids = [*answer.tokens, *([EOS] if answer.finished else [])]
        return cls(answer.text, ids, pieces, words, False, answer.weights)

    @classmethod
    def forced(cls, field: Text, value: Any) -> _Written:
        text, tokeniser = field.show(value), field.tokeniser
        pieces = [*tokeniser.parts(text), NAMES[EOS]]
        return cls(text, [*tokeniser.encode(text), EOS], pieces, tokeniser.words(text), True)


def _check(
    task: SourceToTarget,
    model: nn.Module,
    examples: Sequence[Example],
    forced: list[bool],
    gold: Sequence[Any],
    search: dict[str, Any],
) -> None:
    if not examples:
        raise ValueError("There is nothing to explain.")
    if len(gold) != len(examples):
        raise ValueError(f"There are {len(examples)} inputs and {len(gold)} gold alignments: give one for each.")
    for number, (example, given, links) in enumerate(zip(examples, forced, gold, strict=True), start=1):
        if links is not None and not isinstance(task.source, Text):
            raise ValueError("Gold links connect the words of two texts, but the source is not a text: omit gold.")
        if links is not None and not given:
            raise ValueError("Gold links connect the words of two texts: give the targets as well.")
        asked = [name for name, value in search.items() if value is not None]
        if given and asked:
            raise ValueError(f"{asked[0]} changes the search, but the targets are given: leave it out.")
        for side, field in (("source", task.source), ("target", task.target)):
            if side in example and isinstance(field, Text) and not field.show(example[side]).strip():
                raise ValueError(f"The {side} of input {number} is empty: there is nothing to look at.")
        most = writer(model).longest_target()
        if given and most is not None and len(task.target.encode(example["target"])) - 1 > most:
            raise ValueError(
                f"The target of input {number} has more tokens than the {most:,} that the model can write."
            )
    task.options.of(search)
    for number, left in task.truncated(model, examples).items():
        raise ValueError(f"Input {number + 1} has {left}. Split it into sentences.")


def _explain(
    task: SourceToTarget,
    model: nn.Module,
    example: Example,
    row: dict[str, Any],
    written: _Written,
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
    across = _across(model, trace, batch, written)
    if not across:
        raise ValueError(f"{type(model).__name__} has no attention: there is nothing to show of what it looked at.")
    read = task.source.axis(value, next(iter(across.values())).shape[-1])
    if gold is not None and isinstance(task.source, Text):
        read = _axis(read.names, task.source.tokeniser.words(task.source.show(value)), gold)
    said = _axis(written.pieces, written.words, gold)
    # A word is read where it is written, or one step later, when it has just been written.
    rows = _without_last(said) if choice.shift else said
    shown = [
        *_within(model, trace, read, _begun(said)),
        *(
            Map(name=path, weights=weights[:, choice.shift :], queries=rows, keys=read, layer=_layer(path))
            for path, weights in across.items()
        ),
    ]
    maps = [each for each in shown if matches(each.name, asked.keep)]
    if not maps:
        raise ValueError(f"keep={asked.keep!r} fits none of {', '.join(each.name for each in shown)}.")
    measures = [output(written.text, written.given), log_probability(mean), *unknown(task.source.unknown(value))]
    if isinstance(task.source, Text):
        sides = task.source.tokeniser.words(task.source.show(value)), written.words
        measures += attention_measures(across, sides, choice, gold)
    if faithful:
        measures += faithfulness_measures(writer(model), batch["source"][0], batch["target"][0])
    measures.append(Measure(name="caution", value="", meaning=CAUTION))
    title = f"{short(task.source.show(value))} → {short(written.text)}"
    return Item(
        title=title if asked.name is None else f"{asked.name}: {title}",
        maps=maps,
        measures=measures,
        links=None if gold is None else sorted(gold.possible),
    )


def _batch(task: Task, model: nn.Module, row: dict[str, Any], target: list[int]) -> dict[str, Tensor]:
    device = next(model.parameters()).device
    return {name: tensor.to(device) for name, tensor in task.collate([{**row, "target": target}]).items()}


def _axis(pieces: list[str], words: list[list[int]], gold: Alignment | None) -> TextAxis:
    """The end is special; a text of one word is shown in pieces, unless gold links count its words."""
    special = [len(pieces) - 1] if pieces and pieces[-1] == NAMES[EOS] else []
    grouped = [word for word in words if word]
    return TextAxis(pieces=pieces, words=grouped if len(grouped) > 1 or gold is not None else None, special=special)


def _without_last(said: TextAxis) -> TextAxis:
    last = len(said.pieces) - 1
    words = [[place for place in word if place < last] for word in said.words or ()]
    special = [place for place in said.special if place < last]
    return TextAxis(pieces=said.pieces[:last], words=[word for word in words if word] or None, special=special)


def _begun(said: TextAxis) -> TextAxis:
    """What the decoder reads: the start token, and all that it writes but the last."""
    before = _without_last(said)
    words = [[place + 1 for place in word] for word in before.words or ()]
    return TextAxis(pieces=[NAMES[BOS], *before.pieces], words=words or None, special=[0])


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


def _across(model: nn.Module, trace: Trace, batch: dict[str, Tensor], written: _Written) -> dict[str, Tensor]:
    """(heads, steps, positions) of each attention to the input."""
    if sums_alignments(model) and written.weights is not None:  # what the search found, online or not
        return {"alignment": written.weights[None].float()}
    names = [] if sums_alignments(model) else [path for path in source_attentions(model) if path in trace.paths]
    if names:
        length = int(writer(model).positions(batch["source_mask"])[0])
        joined = {path: trace.joined(path)[0].float().cpu() for path in names}
        return {path: F.pad(weights, (0, length - weights.shape[-1])) for path, weights in joined.items()}
    maps = forced_maps(model, batch)
    return {path: weights[0, :, : len(written.ids)].float().cpu() for path, weights in maps.items()}


def _within(model: nn.Module, trace: Trace, read: Axis, begun: TextAxis) -> list[Map]:
    """The attention of the input to itself, and of the output to itself."""
    across = source_attentions(model)
    maps = []
    for path in trace.paths:
        axis = begun if path.startswith("decoder") else read
        weights = trace.joined(path)[0].float().cpu()
        if path not in across and weights.shape[1:] == (len(axis), len(axis)):
            maps.append(Map(name=path, weights=weights, queries=axis, keys=axis, layer=_layer(path)))
    return maps


def _layer(path: str) -> int | None:
    return next((int(part) for part in path.split(".") if part.isdecimal()), None)
