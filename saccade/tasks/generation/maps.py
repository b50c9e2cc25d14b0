"""The attention of a model while it writes a text, as maps of the explorer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from saccade.data.special import BOS, EOS, NAMES
from saccade.fields import Text
from saccade.interpretation.alignments import Alignment
from saccade.interpretation.explorer import Axis, Map, TextAxis
from saccade.interpretation.recording import Trace
from saccade.interpretation.source import source_attentions
from saccade.tasks.answers import Answer, GeneratedText
from saccade.tasks.generation.extension import Extension
from saccade.tasks.generation.forced_alignment import forced_maps
from saccade.tasks.generation.posteriors import sums_alignments
from saccade.tasks.generation.writer import writer


@dataclass(frozen=True)
class Written:
    """The text that the model wrote, or was forced to write."""

    text: str
    ids: list[int]
    pieces: list[str]
    words: list[list[int]]
    given: bool
    weights: Tensor | None = None

    @classmethod
    def answered(cls, answer: Answer) -> Written:
        assert isinstance(answer, GeneratedText)
        pieces = answer.attention.queries if answer.attention is not None else []
        words = answer.attention.query_words if answer.attention is not None else []
        ids = [*answer.tokens, *([EOS] if answer.finished else [])]
        return cls(answer.text, ids, pieces, words, False, answer.weights)

    @classmethod
    def forced(cls, field: Text, value: Any, extension: Extension | None = None) -> Written:
        text, tokeniser = field.show(value), field.tokeniser
        if extension is not None:
            ids = extension.encode(text)
            return cls(text, [*ids, EOS], [*extension.pieces(ids), NAMES[EOS]], extension.words(ids), True)
        pieces = [*tokeniser.parts(text), NAMES[EOS]]
        return cls(text, [*tokeniser.encode(text), EOS], pieces, tokeniser.words(text), True)


def attention_across(model: nn.Module, trace: Trace, batch: dict[str, Tensor], written: Written) -> dict[str, Tensor]:
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


def maps_of(
    model: nn.Module, trace: Trace, across: dict[str, Tensor], read: Axis, said: TextAxis, shift: int
) -> list[Map]:
    """Every attention of the model: of the input to itself, of the output to itself, and of the output to the input.

    Args:
        model: the model.
        trace: what it attended to.
        across: what `attention_across` returns.
        read: the input.
        said: the output.
        shift: 1 if a word is read one step later, when it has just been written.
    """
    rows = without_last(said) if shift else said
    return [
        *_within(model, trace, read, _begun(said)),
        *(
            Map(name=path, weights=weights[:, shift:], queries=rows, keys=read, layer=_layer(path))
            for path, weights in across.items()
        ),
    ]


def text_axis(pieces: list[str], words: list[list[int]], gold: Alignment | None) -> TextAxis:
    """The end is special; a text of one word is shown in pieces, unless gold links count its words."""
    special = [len(pieces) - 1] if pieces and pieces[-1] == NAMES[EOS] else []
    grouped = [word for word in words if word]
    return TextAxis(pieces=pieces, words=grouped if len(grouped) > 1 or gold is not None else None, special=special)


def in_one_unit(read: Axis, said: TextAxis) -> tuple[Axis, TextAxis]:
    """Words on both sides or on neither.

    Words on one side and letters on the other would hide which letters belong together.
    """
    if isinstance(read, TextAxis) and (read.words is None or said.words is None):
        return replace(read, words=None), replace(said, words=None)
    return read, said


def without_last(said: TextAxis) -> TextAxis:
    """The axis without its last piece, which has no step if words are read one step later."""
    last = len(said.pieces) - 1
    words = [[place for place in word if place < last] for word in said.words or ()]
    special = [place for place in said.special if place < last]
    origins = None if said.origins is None else said.origins[:last]
    return TextAxis(
        pieces=said.pieces[:last], words=[word for word in words if word] or None, special=special, origins=origins
    )


def _begun(said: TextAxis) -> TextAxis:
    """What the decoder reads: the start token, and everything it writes except the last token."""
    before = without_last(said)
    words = [[place + 1 for place in word] for word in before.words or ()]
    return TextAxis(pieces=[NAMES[BOS], *before.pieces], words=words or None, special=[0])


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
