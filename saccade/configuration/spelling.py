"""The names in a configuration, checked against the catalogue: a misspelt one is found without importing torch."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from saccade.configuration.catalogue import Described, Kind, catalogue, classes_in, described
from saccade.configuration.classes import no_argument, unknown_member
from saccade.configuration.errors import refuse
from saccade.configuration.sections import SECTIONS, sizes_of_data
from saccade.configuration.yaml_files import MOST_DEPTH
from saccade.registry import nearest

PLAIN_WORDS = {"Any", "Literal", "Mapping", "None", "Sequence"}
"""What an annotation may name beside classes and aliases."""


def check_spelling(config: Mapping[str, Any]) -> None:
    """Raises a `ConfigError` that lists every misspelt section, class and argument, at every depth.

    Classes given by dotted path are not checked here, nor are values: `Plan` does both.
    """
    refuse(list(_misspelt(config)))


def unknown_sections(config: Mapping[str, Any]) -> Iterator[str]:
    """The problem of each section that does not exist."""
    for name in config:
        if name not in SECTIONS:
            yield f"There is no section {name!r}.{nearest(str(name), SECTIONS)}"


def _misspelt(config: Mapping[str, Any]) -> Iterator[str]:
    yield from unknown_sections(config)
    for name, section in SECTIONS.items():
        given = config.get(name)
        if section.kind is not None:
            yield from _class(catalogue()[section.kind], given, name, section.usual, hide_sizes=name == "model")
        elif isinstance(given, Mapping) and "class" not in given and section.usual is not None:
            usual = described(section.usual)
            known = {n: v for n, v in given.items() if name != "data" or not may_be_role(n, usual.parameters, config)}
            yield from _arguments(usual, usual.name, known, name)


def may_be_role(name: Any, arguments: Collection[str], config: Mapping[str, Any]) -> bool:
    """Whether a name in the data section may be a role of the task, and not a misspelt argument."""
    task = config.get("task")
    inputs = task.get("inputs") if isinstance(task, Mapping) else None
    if isinstance(inputs, Mapping) and name in inputs:
        return True
    return isinstance(name, str) and not difflib.get_close_matches(name[:100], arguments, n=1)


def _class(
    kind: Kind, given: Any, where: str, usual: str | None, *, hide_sizes: bool = False, depth: int = 0
) -> Iterator[str]:
    name = given if isinstance(given, str) else given.get("class", usual) if isinstance(given, Mapping) else None
    if not isinstance(name, str):
        return
    member = kind.find(name)
    if member is None:
        if "." not in name:
            yield unknown_member(where, kind.name, name, [*kind.members, *kind.aliases])
    elif isinstance(given, Mapping):
        short = next(short for short, each in kind.members.items() if each is member)
        yield from _arguments(member, short, given, where, hide_sizes=hide_sizes, depth=depth)


def _arguments(
    member: Described, known: str, given: Mapping[Any, Any], where: str, *, hide_sizes: bool = False, depth: int = 0
) -> Iterator[str]:
    for name, value in given.items():
        parameter = member.parameters.get(name) if isinstance(name, str) else None
        if parameter is not None:
            kinds = classes_in(parameter.annotation)
            usual = parameter.default if isinstance(parameter.default, str) and parameter.literal else None
            for kind in kinds[:1]:
                yield from _values(kind, parameter.annotation, value, f"{where}.{name}", usual, depth + 1)
        elif name != "class":
            required = {n: p.required for n, p in member.parameters.items()}
            hidden = sizes_of_data(required) if hide_sizes else set()
            yield no_argument(where, known, name, [n for n in required if n not in hidden])


def _values(kind: Kind, annotation: str, value: Any, where: str, usual: str | None, depth: int) -> Iterator[str]:
    """Those of a class, of each in a list, or of each in a mapping of classes."""
    if depth > MOST_DEPTH:
        return
    if isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _class(kind, inner, f"{where}[{number}]", None, depth=depth)
    elif isinstance(value, Mapping) and "dict[" in annotation.lower().replace("mapping[", "dict["):
        for name, inner in value.items():
            yield from _class(kind, inner, f"{where}.{name}", None, depth=depth)
    elif not (isinstance(value, str) and (value == "null" or f"'{value}'" in annotation or _has_alias(annotation))):
        yield from _class(kind, value, where, usual, depth=depth)


def _has_alias(annotation: str) -> bool:
    """Whether an annotation names something that may stand for further choices, such as `EncoderName`."""
    words = set(re.findall(r"\b[A-Z]\w*", annotation))
    return bool(words - PLAIN_WORDS - {kind.base for kind in catalogue().values()})
