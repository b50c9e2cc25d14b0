"""Classes by short name or dotted path, and instances as the names and arguments that made them."""

from __future__ import annotations

import functools
import importlib
import os
import re
import sys
from collections.abc import Collection
from typing import Any

from saccade.configuration.catalogue import catalogue
from saccade.configuration.errors import ConfigError, shown
from saccade.registry import NOTED, arguments_of, closest, constructor_parameters, nearest, registries, registry_of

FEW = 5
"""Words that an error message lists within its sentence."""


def find_class(name: Any, base: type, where: str, *, trust: bool = False, words: Collection[str] = ()) -> type:
    """The class that a configuration calls `name`.

    Args:
        name: a short name, or the dotted path of a class; Python code may also give the class itself.
        base: what the class must derive from; its registry knows the short names.
        where: the key of the configuration, for error messages.
        trust: whether a dotted path may be imported, which runs the code of its module.
        words: other values that the configuration allows here, for error messages.
    """
    registry = registry_of(base)
    if isinstance(name, type):
        if not issubclass(name, base):
            raise ConfigError(f"{where}: {name.__name__} is not a kind of {base.__name__}.")
        return name
    if not isinstance(name, str):
        raise ConfigError(f"{where}: a class is a short name or a dotted path, got {shown(name)}.")
    if "." not in name:
        if registry is None:
            raise ConfigError(f"{where}: a {base.__name__} has no short names; give a dotted path, got {shown(name)}.")
        try:
            return registry.get(name)
        except ValueError:
            known = [*registry.names(), *registry.aliases, *words]
            raise ConfigError(unknown_member(where, registry.kind, name, known)) from None
    if registry is not None:
        for _, member in registry.items():
            if name in (dotted(member), f"{registry.home}.{member.__qualname__}"):  # needs neither trust nor an import
                return member
    if not trust:
        raise ConfigError(
            f"{where}: {shown(name)} is not a class that comes with Saccade, and importing it would run its code. "
            "If you trust the author, allow it with trust=True (on the command line: --trust-classes)."
        )
    found = _imported(name, where)
    if not isinstance(found, type) or not issubclass(found, base):
        raise ConfigError(f"{where}: {name} is not a kind of {base.__name__}.")
    return found


CALL = re.compile(r"(\w+)\((.*)\)")
"""`top_k(k=3)`, as Python would call it."""

OTHER_NAMES = {"recurrent": "birnn"}
"""Names that members have in other libraries, mapped to ours."""


def unknown_member(where: str, kind: str, name: str, known: Collection[str]) -> str:
    """The message for a short name that no member has."""
    called = CALL.fullmatch(name)
    if called is not None and called[1] in known:
        arguments = ", ".join(["class: " + called[1], *called[2].replace("=", ": ").split(",")])
        return f"{where}: write {shown(name)} as {{{' '.join(arguments.split())}}}."
    others = [each.name for each in catalogue().values() if each.name != kind and each.find(name) is not None]
    if others:
        return f"{where}: {name!r} is {_a(others[0])}, not {_a(kind)}.{nearest(name, set(known))}"
    choices = nearest(name, set(known))
    meant = OTHER_NAMES.get(closest(name, OTHER_NAMES) or "")
    if meant in known and closest(name, known) is None:
        choices = f" Did you mean {meant!r}?{choices}"
    return f"{where}: unknown {kind} {shown(name)}.{choices} Or give the dotted path of your own class."


def _a(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def wrong_value(where: str, wanted: str, value: Any, words: Collection[str] = ()) -> str:
    """The message for a value that an argument does not take.

    Args:
        where: the key of the configuration.
        wanted: what it takes.
        value: what was given.
        words: those that it takes.
    """
    if isinstance(value, str) and len(words) > FEW:
        return f"{where}: unknown value {shown(value)}.{nearest(value, words)}"
    close = closest(value, words) if isinstance(value, str) else None
    return f"{where} must be {wanted}, got {shown(value)}." + (f" Did you mean {close!r}?" if close else "")


def one_of(choices: Collection[Any]) -> str:
    """`'a', 'b' or 'c'`."""
    *others, last = map(repr, choices)
    return f"{', '.join(others)} or {last}" if others else last


def unnamed_class(where: str, base: type, given: Collection[str]) -> str:
    """The message for arguments without the class that takes them; it names those that do."""
    registry = registry_of(base)
    members = [] if registry is None else registry.items()
    fit = [name for name, kind in members if not set(given) - constructor_parameters(kind).keys()]
    if not given or not fit:
        return f"{where}: name the class, as in `class: short_name` or `class: your.own.Class`."
    *others, last = fit
    takes = f"{', '.join(others)} or {last}" if others else last
    return f"{where}: these arguments need a class as well: {takes}. On the command line: --{where}.class {last}"


def no_argument(where: str, known: str, name: Any, choices: list[str]) -> str:
    """The message for an argument that a constructor does not have."""
    return f"{where} ({known}) has no argument {shown(name)}." + (
        nearest(str(name), choices) if choices else " It takes no arguments."
    )


def name_of(found: type) -> str:
    """The short name if the class has one, else its dotted path."""
    for registry in registries.values():
        for name, member in registry.items():
            if member is found:
                return name
    return dotted(found)


def dotted(found: type) -> str:
    """`package.module.Class`."""
    return f"{found.__module__}.{found.__qualname__}"


def spell_out(value: Any, where: str = "") -> Any:
    """`Entmax`, `partial(Entmax, alpha=1.3)` or `Entmax(alpha=1.3)` as `{"class": Entmax, "alpha": 1.3}`.

    An instance stands for its class and the arguments that it was made with. Anything else is returned as it is.
    """
    if isinstance(value, functools.partial):
        if value.args:
            raise ConfigError(f"{where}: {shown(value)} has arguments without names; constructors take keywords only.")
        return {"class": value.func, **value.keywords}
    if isinstance(value, type):
        return {"class": value}
    registered = any(type(value) is member for registry in registries.values() for _, member in registry.items())
    if registered or NOTED in getattr(value, "__dict__", ()):
        return {"class": type(value), **(arguments_of(value) or {})}
    return value


def _imported(path: str, where: str) -> Any:
    """Imports a dotted path; modules in the working folder are found too, as with `python -m`."""
    module, _, name = path.rpartition(".")
    if not all(part.isidentifier() for part in path.split(".")):
        raise ConfigError(f"{where}: {shown(path)} is not a dotted path such as my_models.MyModel.")
    here = os.getcwd()
    added = here not in sys.path
    if added:
        sys.path.append(here)
    try:
        imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
            raise ConfigError(f"{where}: there is no module {error.name!r} in which to find {path}.") from None
        raise
    finally:
        if added and here in sys.path:
            sys.path.remove(here)
    if not hasattr(imported, name):
        public = [each for each in dir(imported) if not each.startswith("_")]
        raise ConfigError(f"{where}: {module} has no {name!r}.{nearest(name, public)}")
    return getattr(imported, name)
