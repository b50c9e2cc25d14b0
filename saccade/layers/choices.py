"""Scores and selections by name, built for the sizes where they are used."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Mapping
from typing import Any

from saccade.registry import Registry, constructor_parameters
from saccade.scores import Score, scores
from saccade.selections import Selection, selections


def make_score(score: str | Score | functools.partial[Score], **sizes: Any) -> Score:
    """Builds a score from a name or `partial`, adding those `sizes` that it accepts and lacks; copies an instance."""
    made: Score = make_member(score, scores, Score, sizes)
    query_dim, key_dim = sizes.get("query_dim"), sizes.get("key_dim")
    if made.same_features and query_dim != key_dim and None not in (query_dim, key_dim):
        name = score if isinstance(score, str) else type(made).__name__
        raise ValueError(
            f"score: {name} compares queries and keys feature by feature, but here queries have {query_dim} features "
            f"and keys {key_dim}: choose bilinear or additive."
        )
    return made


def make_selection(selection: str | Selection | functools.partial[Selection] | None, **sizes: Any) -> Selection | None:
    """The same for a selection; None stays None, which means the score's default."""
    made: Selection | None = None if selection is None else make_member(selection, selections, Selection, sizes)
    return made


def make_member(given: Any, registry: Registry[Any], kind: type, sizes: Mapping[str, Any]) -> Any:
    """The same for a member of any registry, of this kind."""
    if isinstance(given, kind):
        return copy.deepcopy(given)
    if isinstance(given, str):
        member: type = registry.get(given)
        given = functools.partial(member)
    if not isinstance(given, functools.partial):
        raise TypeError(f"{registry.kind} must be a registered name or a {kind.__name__}, got {given!r}.")
    made = _complete(given, sizes)
    if not isinstance(made, kind):
        raise TypeError(f"{registry.kind} must be a registered name or a {kind.__name__}, got {made!r}.")
    return made


def _complete(given: Any, sizes: Mapping[str, Any]) -> Any:
    """Calls a `partial`, and those among its arguments, with the sizes they lack; anything else is returned as is."""
    if isinstance(given, list | tuple):
        return type(given)(_complete(each, sizes) for each in given)
    if not isinstance(given, functools.partial):
        return given
    parameters = constructor_parameters(given.func)  # type: ignore[arg-type]
    own = {
        name: _complete(value, sizes)
        for name, value in given.keywords.items()
        if value is not None or name not in sizes  # None, as a saved configuration writes it, lacks a size too
    }
    lacking = {name: value for name, value in sizes.items() if name in parameters and name not in own}
    required = {name: value for name, value in lacking.items() if parameters[name].default is inspect.Parameter.empty}
    missing = [p.name for p in parameters.values() if p.default is p.empty and p.name not in {**own, **required}]
    if missing:
        raise TypeError(f"{given.func.__name__} needs {', '.join(missing)}: add it as an argument next to its class.")
    if own and len(lacking) > len(required):
        try:
            return given.func(**own, **lacking)
        except ValueError:  # an optional size may contradict what was given, such as num_heads without learn_alpha
            return given.func(**own, **required)
    return given.func(**own, **lacking)
