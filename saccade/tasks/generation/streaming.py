"""Streams a text as it is written: each token with its attention."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from torch import Tensor, nn

from saccade.data.tokenisers import Tokeniser
from saccade.decoders import Step
from saccade.encoders import EncoderOutput, Layout
from saccade.models import EncoderDecoder
from saccade.tasks.base import rounded
from saccade.tasks.generation.extension import Extension
from saccade.tasks.generation.options import SearchOptions
from saccade.tasks.generation.writer import writer


def one_by_one(options: SearchOptions) -> SearchOptions:
    """The options of a search that decides on one token after another; raises `ValueError` if others were asked for."""
    if options.nbest > 1:
        raise ValueError(
            f"nbest={options.nbest} cannot be streamed: a stream is a single text. Use a prediction instead."
        )
    if options.beam is not None and options.beam > 1:
        raise ValueError(
            f"beam={options.beam} cannot be streamed: a beam search only knows its text at the end. Leave beam out, or "
            "use a prediction instead."
        )
    return options if options.sample else replace(options, beam=1)


def watch(model: nn.Module, vocabulary: Tokeniser | Extension, emit: Callable[[dict[str, Any]], None]) -> nn.Module:
    """The model, with its tokens passed to `emit` as they are written, with the text so far and their weights."""
    written: list[int] = []

    def seen(token: int, weights: Tensor | None) -> None:
        written.append(token)
        row = [] if weights is None else rounded(weights[None])[0]
        emit({"token": vocabulary.pieces([token])[0], "text": vocabulary.decode(written), "weights": row})

    return cast(nn.Module, Watched(writer(model), seen))  # a module in all that a search uses


class Watched:
    """A model whose steps are observed while one text is searched; otherwise it behaves like the model itself.

    A search passes the token that it chose to the next step, so the token of a step is known when the next one begins.
    The end of a text, which nothing follows, is not among them.

    Args:
        model: what answers.
        seen: takes a token and the weights (keys,) of the step that wrote it, None without attention.
    """

    def __init__(self, model: EncoderDecoder, seen: Callable[[int, Tensor | None], None]) -> None:
        self._model, self._seen = model, seen
        self._last: Step | None = None
        self._layout: Layout | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def encode(self, *sources: Tensor, **words: Tensor) -> EncoderOutput:
        encoded = self._model.encode(*sources, **words)
        self._layout = getattr(encoded, "layout", None)
        return encoded

    def step(self, tokens: Tensor, state: Any) -> Step:
        if self._last is not None:
            weights = self._last.weights
            if weights is not None and self._layout is not None:  # of the first source
                weights = self._layout.split(weights[:, None])[0][:, 0]
            self._seen(int(tokens[0]), None if weights is None else weights[0])
        self._last = self._model.step(tokens, state)
        return self._last
