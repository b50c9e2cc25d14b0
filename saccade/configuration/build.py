"""Builds objects from plain data: checked against constructors, with classes only from the registries.

A string is a string and `Any` is data: neither is ever interpreted further. A class is built where an annotation asks
for one, and is looked up in that annotation's registry. Only with trust may it be a dotted path, which is imported.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Collection, Mapping
from typing import Any

from torch import nn

from saccade.configuration.blueprints import Blueprint, blueprints_in, known, made, takes_partial
from saccade.configuration.classes import find_class, no_argument, spell_out, unnamed_class, wrong_value
from saccade.configuration.errors import ConfigError, refuse, shown
from saccade.configuration.hints import (
    alternatives,
    argument_helps,
    hint_of,
    is_class,
    is_list,
    is_mapping,
    is_protocol,
    readable,
    takes_words,
    words_of,
)
from saccade.configuration.scalars import BAD, PLAIN, WHOLE_NUMBERS, scalar
from saccade.configuration.yaml_files import MOST_DEPTH, MOST_NODES
from saccade.registry import constructor_parameters, registry_of

MOST_FEATURES = 2**20
"""The largest whole number that a module takes: products of three such sizes still fit 64 bits."""

MOST_LAYERS = 1024


class Checker:
    """Checks plain data against annotations, and collects every problem.

    Args:
        trust: whether dotted paths may be imported.
    """

    def __init__(self, *, trust: bool = False) -> None:
        self.trust = trust
        self.problems: list[str] = []
        self._left = MOST_NODES

    def blueprint(
        self, kind: type, given: Mapping[str, Any], where: str, *, hidden: Collection[str] = (), depth: int = 0
    ) -> Blueprint:
        """A class with its arguments; `hidden` ones are not offered in error messages."""
        parameters = constructor_parameters(kind)
        checked = {}
        for name, value in given.items():
            if name not in parameters:
                choices = [choice for choice in parameters if choice not in hidden]
                self.problems.append(no_argument(where, known(kind), name, choices))
                continue
            noted = len(self.problems)
            found = self.value(
                hint_of(kind, name),
                value,
                f"{where}.{name}",
                usual=getattr(kind, "usual_classes", {}).get(name, parameters[name].default),
                allowed=_allowed(kind, name),
                depth=depth + 1,
            )
            if found is not BAD:
                checked[name] = found
            elif len(self.problems) == noted:
                self.problems.append(_explained(kind, name, value, where))
        return Blueprint(kind, checked, where)

    def attempt(self, blueprint: Blueprint) -> Any:
        """What a blueprint makes, or `BAD`."""
        try:
            return blueprint.make()
        except ConfigError as error:
            return self._refuse(str(error))

    def value(
        self,
        hint: Any,
        value: Any,
        where: str,
        *,
        usual: Any = inspect.Parameter.empty,
        allowed: range = WHOLE_NUMBERS,
        depth: int = 0,
    ) -> Any:
        """The checked value, in which classes are `Blueprint`s, or `BAD`.

        Args:
            hint: the annotation.
            value: what a configuration, or Python code, gives.
            where: its key.
            usual: the default of the argument, whose class a mapping without `class` means.
            allowed: the whole numbers that are allowed.
            depth: how deep it is nested.
        """
        self._left -= 1
        if depth > MOST_DEPTH or self._left < 0:
            limit = f"nested deeper than {MOST_DEPTH} levels" if depth > MOST_DEPTH else f"over {MOST_NODES} values"
            raise ConfigError(f"{where}: the configuration is too large ({limit}).")
        members = tuple(member if _supported(member) else Any for member in alternatives(hint))
        inner = {"allowed": allowed, "depth": depth + 1}
        if isinstance(value, PLAIN) and not isinstance(value, str):
            return self._scalar(members, value, where, allowed)
        if any(is_protocol(member) and isinstance(value, member) for member in members) and not isinstance(value, str):
            return value  # it stays in memory; the configuration describes it
        base = next((member for member in members if is_class(member) and not is_protocol(member)), None)
        spelt = spell_out(value, where) if base is not None else value
        if base is not None and self._names_class(members, spelt):
            return self._class(members, base, spelt, where, usual, depth)
        several = next((member for member in members if is_list(member)), None)
        if isinstance(value, str):
            found = self._scalar(members, value, where, allowed)
            if found is not BAD or several is None or not takes_words(several):
                return found
            value = [word.strip() for word in value.split(",")]  # as on the command line: bleu,chrf
        if isinstance(value, list | tuple) and several is not None:
            return self._list(several, value, where, inner)
        if isinstance(value, Mapping):
            mapping = next((member for member in members if is_mapping(member)), None)
            if mapping is not None:
                return self._mapping(mapping, value, where, inner)
        if Any in members:
            return self._data(value, where, inner)
        if isinstance(base, type) and isinstance(value, base):
            fix = f"give the class and its arguments: partial({type(value).__name__}, ...)"
            return self._refuse(f"{where}: a {type(value).__name__} cannot be written to the configuration; {fix}.")
        return BAD

    def _refuse(self, problem: str) -> Any:
        self.problems.append(problem)
        return BAD

    def _scalar(self, members: tuple[Any, ...], value: Any, where: str, allowed: range) -> Any:
        try:
            return scalar(members, value, allowed)
        except ConfigError as error:
            return self._refuse(f"{where}: {error}")

    @staticmethod
    def _names_class(members: tuple[Any, ...], value: Any) -> bool:
        """Whether a value means a class, and not another member of the union."""
        if isinstance(value, Mapping):
            return "class" in value or not any(is_mapping(member) or member is Any for member in members)
        chosen = [word for member in members for word in words_of(member)]
        return isinstance(value, str) and value not in chosen and not (value == "null" and type(None) in members)

    def _class(self, members: tuple[Any, ...], base: type, value: Any, where: str, usual: Any, depth: int) -> Any:
        bare = isinstance(value, str)
        if bare and str in members and registry_of(base) is None:
            return value  # text beside a class without short names is text
        if bare and registry_of(base) is None and "." not in value:
            return BAD
        given = {"class": value} if bare else dict(value)
        name = given.pop("class", usual if isinstance(usual, str) else None)
        if name is None:
            return self._refuse(unnamed_class(where, base, given))
        try:
            words = [word for member in members for word in words_of(member)] if bare else []
            kind = find_class(name, base, where, trust=self.trust, words=words)
        except ConfigError as error:
            return self._refuse(str(error))
        if bare and str in members and "." not in value:
            return value  # the constructor takes the name, and fills in what it needs
        return self.blueprint(kind, given, where, depth=depth)

    def _list(self, hint: Any, value: Any, where: str, inner: Any) -> Any:
        hints = typing.get_args(hint)
        pair = (typing.get_origin(hint) or hint) is tuple
        if pair and hints and hints[-1] is not Ellipsis:
            if len(value) != len(hints):
                return BAD
        else:
            hints = (hints[0] if hints else Any,) * len(value)
        found = [
            self._inner(h, each, f"{where}[{i}]", inner) for i, (h, each) in enumerate(zip(hints, value, strict=True))
        ]
        if any(each is BAD for each in found):
            return BAD
        return tuple(found) if pair else found

    def _mapping(self, hint: Any, value: Mapping[Any, Any], where: str, inner: Any) -> Any:
        key_hint, value_hint = typing.get_args(hint) or (Any, Any)
        found = {}
        for key, each in value.items():
            checked = self._scalar(alternatives(key_hint), key, where, WHOLE_NUMBERS) if isinstance(key, PLAIN) else BAD
            found[checked] = self._inner(value_hint, each, f"{where}.{str(key)[:80]}", inner)
        return BAD if BAD in found or any(each is BAD for each in found.values()) else found

    def _inner(self, hint: Any, value: Any, where: str, inner: Any) -> Any:
        noted = len(self.problems)
        found = self.value(hint, value, where, **inner)
        if found is BAD and len(self.problems) == noted:
            self.problems.append(_wrong(hint, value, where))
        return found

    def _data(self, value: Any, where: str, inner: Any) -> Any:
        """Plain data, copied and never interpreted."""
        if isinstance(value, list | tuple):
            return self._list(list[Any], value, where, inner)
        if isinstance(value, Mapping):
            return self._mapping(dict[Any, Any], value, where, inner)
        return self._refuse(f"{where}: {shown(value)} cannot be written to the configuration: give plain data.")


def build(hint: Any, value: Any, where: str, *, trust: bool = False) -> Any:
    """Builds the object that plain data describes, as an annotation requires.

    Args:
        hint: an annotation such as `int | None`, `list[Score]` or `Selection`.
        value: plain data; a class is `{class: name, argument: value}` or a bare name.
        where: the key of the configuration, for error messages.
        trust: whether dotted paths may be imported, which runs the code of their modules.
    """
    checker = Checker(trust=trust)
    checked = checker.value(hint, value, where)
    if checked is BAD and not checker.problems:
        checker.problems.append(_wrong(hint, value, where))
    refuse(checker.problems)
    if not takes_partial(hint):
        refuse([problem for blueprint in blueprints_in(checked) for problem in blueprint.missing()])
    return made(checked, partial=takes_partial(hint))


def check_part(
    kind: type, given: Mapping[str, Any], where: str, *, supplied: Collection[str] = (), trust: bool = False
) -> Blueprint:
    """A class with its arguments, checked.

    Args:
        kind: the class.
        given: its arguments as a configuration writes them.
        where: the key of the configuration, for error messages.
        supplied: arguments that `Blueprint.make` gets later.
        trust: whether dotted paths may be imported.
    """
    checker = Checker(trust=trust)
    blueprint = checker.blueprint(kind, given, where)
    refuse([*checker.problems, *blueprint.missing(supplied)])
    return blueprint


def _allowed(kind: type, name: str) -> range:
    """The whole numbers that an argument takes; those of modules decide how much is allocated, or how often."""
    if not issubclass(kind, nn.Module):
        return WHOLE_NUMBERS
    if name.endswith(("layers", "heads", "slices")):
        return range(name.endswith(("heads", "slices")), MOST_LAYERS + 1)
    return range(name.endswith("dim"), MOST_FEATURES + 1)


def _wrong(hint: Any, value: Any, where: str) -> str:
    return wrong_value(where, readable(hint), value, words_of(hint))


def _explained(kind: type, name: str, value: Any, where: str) -> str:
    hint = hint_of(kind, name)
    text = _wrong(hint, value, f"{where}.{name}")
    if any(is_list(member) or is_mapping(member) for member in alternatives(hint)):
        text += f" {name}: {argument_helps(kind)[name]}" if name in argument_helps(kind) else ""
    return text


def _supported(hint: Any) -> bool:
    """Whether an annotation says what it allows; any other takes plain data."""
    return (
        (isinstance(hint, type) and hint is not object)
        or is_list(hint)
        or is_mapping(hint)
        or typing.get_origin(hint) is not None
    )
