"""Scores and selections by short name, in the sizes of the place where they stand."""

from __future__ import annotations

import copy
from typing import Any

from saccade.registry import Registry, constructor_parameters
from saccade.scores import Score, scores
from saccade.selections import Selection, selections


def make_score(score: str | Score, **sizes: Any) -> Score:
    """A score called so, given those of the `sizes` that its constructor takes; a copy of a given instance."""
    made: Score = _make(score, scores, Score, sizes)
    return made


def make_selection(selection: str | Selection | None, **sizes: Any) -> Selection | None:
    """The same for a selection; None stays None, which is the score's own."""
    made: Selection | None = None if selection is None else _make(selection, selections, Selection, sizes)
    return made


def _make(given: Any, registry: Registry[Any], kind: type, sizes: dict[str, Any]) -> Any:
    if isinstance(given, kind):
        return copy.deepcopy(given)
    if not isinstance(given, str):
        raise TypeError(f"{registry.kind} must be the name of one or a {kind.__name__}, got {given!r}.")
    accepted = constructor_parameters(registry.get(given))
    return registry.create(given, **{size: value for size, value in sizes.items() if size in accepted})
