"""A text as it is written: each token with what the model looked at for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from saccade.decoders import Step


class Watched:
    """A model whose steps are seen while one text is searched; in all else it is the model itself.

    A search passes the token that it chose to the next step, so the token of a step is known when the next one begins.
    The end of a text, which nothing follows, is not among them.

    Args:
        model: with `step`.
        seen: takes a token and the weights (keys,) of the step that wrote it, None without attention.
    """

    def __init__(self, model: Any, seen: Callable[[int, Tensor | None], None]) -> None:
        self._model, self._seen = model, seen
        self._last: Step | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def step(self, tokens: Tensor, state: Any) -> Step:
        if self._last is not None:
            weights = self._last.weights
            self._seen(int(tokens[0]), None if weights is None else weights[0])
        found: Step = self._model.step(tokens, state)
        self._last = found
        return found
