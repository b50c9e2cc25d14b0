"""The annotations of constructors: what they allow, and how error messages describe it."""

from __future__ import annotations

import functools
import importlib
import inspect
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from saccade.configuration.catalogue import catalogue
from saccade.configuration.classes import one_of
from saccade.registry import registries, registry_of

NAMES = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "yes or no",
    Path: "a path",
    type(None): "null",
    Any: "any value",
}


def hint_of(kind: type, name: str) -> Any:
    """The annotation of a constructor's argument; `Any` if it has none or cannot be resolved."""
    return _hints(kind).get(name, Any)


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    owner = next((parent for parent in kind.__mro__ if "__init__" in vars(parent)), object)
    made = inspect.unwrap(owner.__init__)  # type: ignore[misc]
    scope = getattr(made, "__globals__", {})
    try:
        return typing.get_type_hints(made, scope)
    except NameError:  # a module may import a base class for type checkers alone: then its registry knows it
        for described in catalogue().values():
            importlib.import_module(described.home)
        known = {registry.base.__name__: registry.base for registry in registries.values()}
    try:
        return typing.get_type_hints(made, {**known, **scope})
    except NameError:  # what cannot be resolved is plain data
        return {}


def alternatives(hint: Any) -> tuple[Any, ...]:
    """The members of a union, or the hint alone."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return tuple(inner for member in typing.get_args(hint) for inner in alternatives(member))
    return (hint,)


def words_of(hint: Any) -> list[str]:
    """The words that a hint allows, among other values."""
    literals = [member for member in alternatives(hint) if typing.get_origin(member) is typing.Literal]
    return [str(word) for literal in literals for word in typing.get_args(literal)]


def takes_words(hint: Any) -> bool:
    """Whether a hint asks for a list of certain words, such as metrics."""
    return any(map(words_of, typing.get_args(hint)[:1]))


def is_list(hint: Any) -> bool:
    """Whether a hint asks for a list, a tuple or any other sequence but text."""
    return hint in (list, tuple, Sequence) or typing.get_origin(hint) in (list, tuple, Sequence)


def is_mapping(hint: Any) -> bool:
    """Whether a hint asks for a mapping."""
    return hint in (dict, Mapping) or typing.get_origin(hint) in (dict, Mapping)


def is_class(hint: Any) -> bool:
    """Whether a hint asks for an instance of a class of Saccade's, PyTorch's or the user's."""
    plain = not isinstance(hint, type) or hint.__module__ == "builtins" or hint in NAMES
    return not (plain or is_mapping(hint) or is_list(hint))


def is_protocol(hint: Any) -> bool:
    """Whether a hint asks for an object of a certain form, which only Python code can give."""
    return isinstance(hint, type) and getattr(hint, "_is_protocol", False)  # typing.is_protocol of Python 3.13


def readable(hint: Any) -> str:
    """An annotation in plain words: "a whole number or null"."""
    members = alternatives(hint)
    if len(members) > 1:
        # A class that has short names says so itself.
        named = any(registry_of(member) is not None for member in members if is_class(member))
        shown = [m for m in members if not (named and m is str) and typing.get_origin(m) is not functools.partial]
        return " or ".join(dict.fromkeys(readable(member) for member in shown))
    if typing.get_origin(hint) is typing.Literal:
        return one_of(typing.get_args(hint))
    if (isinstance(hint, type) and hint in NAMES) or hint is Any:
        return NAMES[hint]
    given = typing.get_args(hint)
    if is_list(hint):
        if typing.get_origin(hint) is tuple and given and given[-1] is not Ellipsis:
            return f"a list of {len(given)}: {', '.join(map(readable, given))}"
        return f"a list of {readable(given[0])}" if given else "a list"
    if is_mapping(hint):
        return f"a mapping from {readable(given[0])} to {readable(given[1])}" if given else "a mapping"
    if is_protocol(hint):
        return f"in Python, a {hint.__name__}"
    if is_class(hint):
        registry = registry_of(hint)
        if registry is not None:
            article = "an" if registry.kind[0] in "aeiou" else "a"
            return f"the name of {article} {registry.kind} or {{class: name, argument: value}}"
        return f"the class of a {hint.__name__}"
    return str(hint).replace("typing.", "").replace("collections.abc.", "")


def argument_helps(kind: type) -> dict[str, str]:
    """What `Args:` in a class's docstring says about each argument."""
    paragraphs = (inspect.getdoc(kind) or "").split("\n\n")
    listed = next((text for text in paragraphs if text.startswith("Args:")), "").splitlines()[1:]
    helps: dict[str, str] = {}
    names: list[str] = []
    for line in listed:
        if line.startswith("    ") and not line.startswith("     ") and ": " in line:
            heading, _, text = line.strip().partition(": ")
            names = [name.strip() for name in heading.split(",")]
            helps |= dict.fromkeys(names, text)
        else:
            helps |= {name: f"{helps[name]} {line.strip()}" for name in names}
    return helps
