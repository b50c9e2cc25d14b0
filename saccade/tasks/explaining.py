"""What a model looked at while it wrote each target, ready for the explorer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from saccade.data.special import BOS, EOS, NAMES, UNK
from saccade.evaluation import CAUTION
from saccade.interpretation.alignments import Alignment, Link
from saccade.interpretation.explorer import Item, Map, Measure, TextAxis
from saccade.interpretation.interventions import source_attentions
from saccade.interpretation.recording import Trace, record
from saccade.interpretation.recording.trace import matches
from saccade.tasks.aligning import sums_alignments
from saccade.tasks.base import Prediction
from saccade.tasks.explained_measures import (
    attention_measures,
    faithfulness_measures,
    log_probability,
    output,
    short,
    testable,
    unknown,
)
from saccade.tasks.forced_alignment import Reader, forced_maps, too_long

CHEAP = 1024
"""Source tokens times target tokens, of all inputs, up to which faithfulness is tested unasked."""

Gold = Alignment | Iterable[Link]


def explain_texts(
    task: Any,
    model: Any,
    inputs: Sequence[str],
    targets: Sequence[str] | None = None,
    *,
    gold: Sequence[Gold] | None = None,
    reader: Reader = Reader(),  # noqa: B008 (it is frozen)
    keep: str = "*",
    faithfulness: bool | None = None,
    name: str | None = None,
    **options: Any,
) -> list[Item]:
    """An item of the explorer for each input: every attention of the model, and measures of that to the source.

    Args:
        task: a transduction whose tokenisers are learnt.
        model: with attention, or with alignments of another kind.
        inputs: source texts.
        targets: what the model is made to write (forced decoding); its own predictions by default.
        gold: the links that people made between the words of each input and target.
        reader: which of several attentions to the source the measures are of.
        keep: a name or pattern of the attentions to show, as for `saccade.record`.
        faithfulness: whether to test if the model depends on what it looks at; by default where that is cheap.
        name: of the model, where several stand side by side.
        options: of the search, such as `beam=5`.
    """
    _check(task, model, inputs, targets, gold, options)
    if targets is None:
        written = [_Written.predicted(p) for p in task.predict(model, list(inputs), **options)]
    else:
        written = [_Written.forced(task.target_tokeniser, text) for text in targets]
    sources = [[*task.source_tokeniser.encode(text), EOS] for text in inputs]
    if faithfulness is None:
        cost = sum(len(ids) * len(target.ids) for ids, target in zip(sources, written, strict=True))
        faithfulness = cost <= CHEAP and testable(model)
    links = [None] * len(inputs) if gold is None else [_alignment(each) for each in gold]
    return [
        _explain(task, model, *each, reader=reader, keep=keep, faithfulness=faithfulness, name=name)
        for each in zip(inputs, sources, written, links, strict=True)
    ]


@dataclass(frozen=True)
class _Written:
    """The target of one input."""

    text: str
    ids: list[int]
    pieces: list[str]
    words: list[list[int]]
    given: bool
    weights: Tensor | None = None

    @classmethod
    def predicted(cls, prediction: Prediction) -> _Written:
        finished = [EOS] if prediction.finished else []
        ids = [*prediction.tokens, *finished]
        return cls(prediction.text, ids, prediction.target, prediction.target_words, False, prediction.weights)

    @classmethod
    def forced(cls, tokeniser: Any, text: str) -> _Written:
        ids = [*tokeniser.encode(text), EOS]
        return cls(text, ids, [*tokeniser.parts(text), NAMES[EOS]], tokeniser.words(text), True)


def _check(
    task: Any,
    model: Any,
    inputs: Sequence[str],
    targets: Sequence[str] | None,
    gold: Sequence[Gold] | None,
    options: dict[str, Any],
) -> None:
    if not hasattr(task, "source_tokeniser"):
        raise TypeError(f"A source and a target text are explained, and {type(task).__name__} has none.")
    if isinstance(inputs, str) or isinstance(targets, str):
        raise TypeError("inputs and targets are lists: write explain([text]).")
    if not inputs:
        raise ValueError("There are no inputs to explain.")
    if targets is None and gold is not None:
        raise ValueError("Gold links are between the words of two texts: give the targets as well.")
    if targets is not None and options:
        raise ValueError(f"{next(iter(options))} is an option of the search, and the targets are given: leave it out.")
    for what, several in (("targets", targets), ("gold alignments", gold)):
        if several is not None and len(several) != len(inputs):
            raise ValueError(f"There are {len(inputs)} inputs and {len(several)} {what}: there must be as many.")
    for side, texts in (("Input", inputs), ("Target", targets or ())):
        for number, text in enumerate(texts, start=1):
            if not text.strip():
                raise ValueError(f"{side} {number} is empty: there is nothing to look at.")
    long = too_long(task, model, list(zip(inputs, targets or [""] * len(inputs), strict=True)))
    if long:
        raise ValueError(
            f"Input {long[0] + 1}{'' if targets is None else ' or its target'} has more tokens than the model has "
            "positions. Split it into sentences."
        )
    if targets is None:
        task.check_options(options)
        for number, left in task.unread(model, inputs).items():
            raise ValueError(f"Input {number + 1} has {left}. Split it into sentences.")


def _explain(
    task: Any,
    model: Any,
    text: str,
    source: list[int],
    written: _Written,
    gold: Alignment | None,
    *,
    reader: Reader,
    keep: str,
    faithfulness: bool,
    name: str | None,
) -> Item:
    tokeniser = task.source_tokeniser
    if not written.ids:
        raise ValueError(f"The model wrote nothing for {text!r:.80}: give it a target.")
    read = _axis([*tokeniser.parts(text), NAMES[EOS]], tokeniser.words(text), gold)
    said = _axis(written.pieces, written.words, gold)
    trace, mean = _forced(task, model, source, written.ids)
    across = _across(model, trace, source, written)
    shown = [
        *_of_one_text(model, trace, read, _begun(said)),
        *(Map(name=p, weights=w, queries=said, keys=read, layer=_layer(p)) for p, w in across.items()),
    ]
    maps = [each for each in shown if matches(each.name, keep)]
    if not maps:
        raise ValueError(f"keep={keep!r} fits none of {', '.join(each.name for each in shown)}.")
    measures = [
        output(written.text, written.given),
        log_probability(mean),
        *unknown([piece for piece, token in zip(read.pieces, source, strict=True) if token == UNK]),
        *attention_measures(across, (tokeniser.words(text), written.words), reader, gold),
    ]
    if faithfulness:
        device = next(model.parameters()).device
        measures += faithfulness_measures(model, *(torch.tensor(ids, device=device) for ids in (source, written.ids)))
    measures.append(Measure(name="caution", value="", meaning=CAUTION))
    title = f"{short(text)} → {short(written.text)}"
    return Item(
        title=title if name is None else f"{name}: {title}",
        maps=maps,
        measures=measures,
        links=None if gold is None else sorted(gold.possible),
    )


def _axis(pieces: list[str], words: list[list[int]], gold: Alignment | None) -> TextAxis:
    """The end of the sentence is special; a text of a single word is shown in pieces, unless links count its words."""
    special = [place for place, piece in enumerate(pieces) if piece == NAMES[EOS] and place == len(pieces) - 1]
    grouped = [word for word in words if word]
    return TextAxis(pieces=pieces, words=grouped if len(grouped) > 1 or gold is not None else None, special=special)


def _begun(said: TextAxis) -> TextAxis:
    """What the decoder reads: the begin, and all that it writes but the last."""
    last = len(said.pieces) - 1
    words = [[place + 1 for place in word if place < last] for word in said.words or ()]
    pieces = [NAMES[BOS], *said.pieces[:-1]]
    return TextAxis(pieces=pieces, words=[word for word in words if word] or None, special=[0])


@torch.no_grad()
def _forced(task: Any, model: Any, source: list[int], target: list[int]) -> tuple[Trace, float]:
    """All attention while the model writes the target, and the mean log-probability of the target's tokens."""
    device = next(model.parameters()).device
    batch = {"source": torch.tensor([source], device=device), "target": torch.tensor([target], device=device)}
    was_training = model.training
    model.eval()
    try:
        with record(model) as trace:
            loss = task.loss(model, batch)
    finally:
        model.train(was_training)
    return trace, -float(loss.total) / float(loss.count)


def _across(model: Any, trace: Trace, source: list[int], written: _Written) -> dict[str, Tensor]:
    """(heads, steps, length) of each attention to the source."""
    steps, length = len(written.ids), len(source)
    if sums_alignments(model) and written.weights is not None:  # what the search found, online or not
        return {"alignment": written.weights[None].float()}
    names = [] if sums_alignments(model) else [path for path in source_attentions(model) if path in trace.paths]
    if names:
        joined = {path: trace.joined(path)[0].float().cpu() for path in names}
        return {path: F.pad(weights, (0, length - weights.shape[-1])) for path, weights in joined.items()}
    unended = written.ids[:-1] if written.ids[-1] == EOS else written.ids
    maps = forced_maps(model, [(source[:-1], unended)])
    if not maps:
        raise ValueError(f"{type(model).__name__} has no attention: there is nothing to show of what it looked at.")
    return {path: weights[0, :, :steps].float().cpu() for path, weights in maps.items()}


def _of_one_text(model: Any, trace: Trace, read: TextAxis, begun: TextAxis) -> list[Map]:
    """The attention of the source to itself, and of the target to itself."""
    across = source_attentions(model)
    maps = []
    for path in trace.paths:
        axis = begun if path.startswith("decoder") else read
        weights = trace.joined(path)[0].float().cpu()
        if path not in across and weights.shape[1:] == (len(axis), len(axis)):
            maps.append(Map(name=path, weights=weights, queries=axis, keys=axis, layer=_layer(path)))
    return maps


def _alignment(links: Gold) -> Alignment:
    return links if isinstance(links, Alignment) else Alignment.of(links)


def _layer(path: str) -> int | None:
    return next((int(part) for part in path.split(".") if part.isdecimal()), None)
