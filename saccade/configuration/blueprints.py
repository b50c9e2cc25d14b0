"""Blueprints: classes with checked arguments, from which objects are made."""

from __future__ import annotations

import functools
import typing
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from saccade.configuration.classes import name_of
from saccade.configuration.errors import ConfigError
from saccade.configuration.hints import alternatives, hint_of
from saccade.configuration.scalars import PLAIN
from saccade.registry import constructor_parameters


@dataclass(frozen=True)
class Blueprint:
    """A class with checked arguments, from which instances are made."""

    kind: type
    given: dict[str, Any]
    """The arguments that are not left to their defaults; classes among them are blueprints again."""

    where: str
    """The key of the configuration."""

    @property
    def plain(self) -> dict[str, Any]:
        """All arguments as a configuration writes them, with defaults and without the class."""
        written = {}
        for name, parameter in constructor_parameters(self.kind).items():
            if name in self.given:
                written[name] = _plain(self.given[name])
            elif parameter.default is not parameter.empty and _is_plain(parameter.default):
                written[name] = _plain(parameter.default)
        return written

    def lacks(self, supplied: Collection[str] = ()) -> list[str]:
        """The required arguments that are neither given nor supplied."""
        required = [p.name for p in constructor_parameters(self.kind).values() if p.default is p.empty]
        return [name for name in required if name not in self.given and name not in supplied]

    def missing(self, supplied: Collection[str] = ()) -> Iterator[str]:
        """The problem of each blueprint, this one and those inside, with missing arguments that nobody fills in.

        Args:
            supplied: arguments of this blueprint that `make` gets.
        """
        needs = self.lacks(supplied)
        if needs:
            yield f"{self.where} ({known(self.kind)}) needs {', '.join(needs)}."
        for name, value in self.given.items():
            if not takes_partial(hint_of(self.kind, name)):
                for blueprint in blueprints_in(value):
                    yield from blueprint.missing()

    def arguments(self) -> dict[str, Any]:
        """The given arguments, with new instances of the classes among them.

        Where the annotation allows a `partial`, the owner fills in sizes, and gets one instead of an instance.
        """
        return {
            name: made(value, partial=takes_partial(hint_of(self.kind, name))) for name, value in self.given.items()
        }

    def make(self, **supplied: Any) -> Any:
        """A new instance."""
        arguments = self.arguments()
        try:
            return self.kind(**arguments, **supplied)
        except (ValueError, TypeError, ArithmeticError) as error:
            raise ConfigError(str(error) if isinstance(error, ConfigError) else f"{self.where}: {error}") from None

    def out_of_range(self) -> Iterator[str]:
        """The problem of each argument whose value the constructor rejects by name, one after the other."""
        given = dict(self.given)
        while True:
            try:
                Blueprint(self.kind, given, self.where).make()
            except ConfigError as error:
                text = str(error)
            else:
                return
            wrong = next((n for n, v in given.items() if f": {n} must" in text and f"got {v}" in text), None)
            if wrong is None:
                return
            yield text
            del given[wrong]

    def partial(self) -> functools.partial[Any]:
        """The class with its arguments as a `partial`, recursively: the owner completes and calls it."""
        return functools.partial(self.kind, **{name: made(v, partial=True) for name, v in self.given.items()})

    def rehearse(self) -> None:
        """Makes every complete blueprint inside, so that an error names its own key and not that of the owner."""
        for blueprint in blueprints_in(self.given):
            blueprint.rehearse()
            if next(blueprint.missing(), None) is None:
                blueprint.make()


def known(kind: type) -> str:
    """A class as error messages call it: by its short name, or else its class name."""
    name = name_of(kind)
    return kind.__name__ if "." in name else name


def takes_partial(hint: Any) -> bool:
    """Whether the owner of an argument fills in what a class lacks: the annotation allows a `partial`."""
    return any(typing.get_origin(member) is functools.partial for member in alternatives(hint))


def blueprints_in(value: Any) -> Iterator[Blueprint]:
    """The parts of a checked value, those within parts not included."""
    if isinstance(value, Blueprint):
        yield value
    elif isinstance(value, list | tuple | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from blueprints_in(each)


def made(value: Any, *, partial: bool = False) -> Any:
    """A checked value with a new instance, or a `partial`, for each blueprint."""
    if isinstance(value, Blueprint):
        return value.partial() if partial else value.make()
    if isinstance(value, dict):
        return {name: made(inner, partial=partial) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(made(inner, partial=partial) for inner in value)
    return value


def _is_plain(value: Any) -> bool:
    """Whether a default can be written; one that cannot is left out, and applies again when read."""
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    return isinstance(value, PLAIN)


def _plain(value: Any) -> Any:
    """A checked value as a configuration writes it."""
    if isinstance(value, Blueprint):
        return {"class": name_of(value.kind), **value.plain}
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value if isinstance(value, PLAIN) else str(value)
