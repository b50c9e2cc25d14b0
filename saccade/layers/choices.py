"""Scores and selections by short name, in the sizes of the place where they stand."""

from __future__ import annotations

import copy
from typing import Any

from saccade.registry import Registry, constructor_parameters
from saccade.scores import Score, scores
from saccade.selections import Selection, selections


def make_score(score: str | Score, **sizes: Any) -> Score:
    """A score called so, given those of the `sizes` that its constructor takes; a copy of a given instance."""
    return _make(score, scores, sizes) if isinstance(score, str) else copy.deepcopy(score)


def make_selection(selection: str | Selection, **sizes: Any) -> Selection:
    """A selection called so, given those of the `sizes` that its constructor takes; a copy of a given instance."""
    return _make(selection, selections, sizes) if isinstance(selection, str) else copy.deepcopy(selection)


def _make(name: str, registry: Registry[Any], sizes: dict[str, Any]) -> Any:
    accepted = constructor_parameters(registry.get(name))
    return registry.create(name, **{size: value for size, value in sizes.items() if size in accepted})
