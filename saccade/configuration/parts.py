"""Classes by short name or dotted path."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import importlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from saccade.configuration.errors import ConfigError
from saccade.registry import Registry, nearest

_TRUSTING = contextvars.ContextVar("trusting", default=True)


@contextlib.contextmanager
def trusting(trust: bool) -> Iterator[None]:
    """Whether a configuration may name classes that are not Saccade's: to make one runs whatever code it has."""
    before = _TRUSTING.set(trust)
    try:
        yield
    finally:
        _TRUSTING.reset(before)


def registries() -> Iterator[tuple[type, Registry[Any]]]:
    """The base class of each kind of part, and the members' short names."""
    from torch import nn

    from saccade.aggregations import Aggregation, aggregations
    from saccade.data.tokenisers import Tokeniser, tokenisers
    from saccade.models import models
    from saccade.scores import Score, scores
    from saccade.selections import Selection, selections
    from saccade.tasks import Task, tasks
    from saccade.training import Optimiser, Schedule, optimisers, schedules

    yield Task, tasks
    yield Tokeniser, tokenisers
    yield Optimiser, optimisers
    yield Schedule, schedules
    yield Score, scores
    yield Selection, selections
    yield Aggregation, aggregations
    yield nn.Module, models


def spell_out(value: Any) -> Any:
    """`partial(Entmax, alpha=1.3)` or `Entmax`, as Python would say it, in the form that a configuration has."""
    if isinstance(value, functools.partial):
        if value.args:
            raise ConfigError(f"{value} has arguments without names: constructors take keywords only.")
        return {"class": value.func, **value.keywords}
    return {"class": value} if isinstance(value, type) else value


def find_class(name: Any, base: type, where: str) -> type:
    """The class that a configuration calls `name`: a short name, or the dotted path of a class of the user's own."""
    registry = next((registry for kind, registry in registries() if kind is base), None)
    if isinstance(name, type) and issubclass(name, base):
        return name
    if not isinstance(name, str):
        raise ConfigError(f"{where}: a class is a short name or a dotted path, got {name!r}.")
    if "." not in name:
        if registry is None:
            raise ConfigError(f"{where}: {name!r} must be the dotted path of a {base.__name__}.")
        try:
            return registry.get(name)
        except ValueError as error:
            raise ConfigError(f"{where}: {error} Or give the dotted path of your own class.") from None
    found = _imported(name, where)
    if not isinstance(found, type) or not issubclass(found, base):
        raise ConfigError(f"{where}: {name} is not a kind of {base.__name__}.")
    return found


def name_of(found: type) -> str:
    """The short name if there is one, else the dotted path."""
    for _, registry in registries():
        for name, member in registry.items():
            if member is found:
                return name
    return f"{found.__module__}.{found.__qualname__}"


def _imported(path: str, where: str) -> Any:
    module, _, name = path.rpartition(".")
    if not _TRUSTING.get() and module.partition(".")[0] != "saccade":
        raise ConfigError(
            f"{where}: {path} is no class of Saccade's, and to use it runs code that this run chose. If you trust "
            "where the run and the class come from, load it with trust=True (on the command line: --trust-classes)."
        )
    here = os.getcwd()
    if here not in sys.path:  # a console script does not look in the current folder, where the user's file is
        sys.path.append(here)
    try:
        imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
            raise ConfigError(f"{where}: there is no module {error.name!r} to find {path} in.") from None
        raise
    if not hasattr(imported, name):
        raise ConfigError(
            f"{where}: {module} has no {name!r}.{nearest(name, (n for n in dir(imported) if n[0] != '_'))}"
        )
    return getattr(imported, name)
