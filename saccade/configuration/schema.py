"""Arguments checked against the signature of a constructor, by jsonargparse."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from saccade.configuration.errors import ConfigError
from saccade.configuration.parts import find_class, name_of, registries, spell_out
from saccade.data.extra import required
from saccade.registry import constructor_parameters, nearest

KEY = "part"


class Part:
    """A class with checked arguments, from which instances are made.

    Args:
        kind: the class.
        given: its arguments as a configuration writes them.
        where: the key of the configuration under which it stands.
        supplied: arguments that come from elsewhere later.
    """

    def __init__(self, kind: type, given: Mapping[str, Any], where: str, *, supplied: Collection[str] = ()) -> None:
        self.kind, self.where = kind, where
        check_names(kind, given, where, supplied)
        _check_spelling(given, where)
        arguments = {name: _nested(kind, name, value, f"{where}.{name}") for name, value in given.items()}
        self._parser = make_parser(kind, supplied)
        try:
            self._checked = self._parser.parse_object({KEY: arguments} if arguments else {})
        except Exception as error:
            raise _explained(error, kind, where, given) from None

    @property
    def plain(self) -> dict[str, Any]:
        """All arguments, the defaults included and the class not, as a configuration writes them."""
        written: dict[str, Any] = _plain(self._checked.as_dict().get(KEY, {}))
        return written

    def spelled(self) -> dict[str, Any]:
        """All arguments as jsonargparse writes them."""
        return dict(self._checked.as_dict().get(KEY, {}))

    def arguments(self) -> dict[str, Any]:
        """All arguments, with new instances of the classes among them."""
        try:
            made = self._parser.instantiate(self._checked)
        except (ValueError, TypeError) as error:
            raise ConfigError(f"{self.where}: {error}") from None
        return dict(vars(made.get(KEY) or types.SimpleNamespace()))

    def make(self, **supplied: Any) -> Any:
        """An instance."""
        arguments = self.arguments()
        try:
            return self.kind(**arguments, **supplied)
        except (ValueError, TypeError) as error:
            raise ConfigError(f"{self.where}: {error}") from None


def make_parser(kind: type, supplied: Collection[str] = ()) -> Any:
    """A jsonargparse parser of a constructor's arguments."""
    parser = required("jsonargparse").ArgumentParser(exit_on_error=False, add_help=False)
    parser.add_class_arguments(kind, KEY, instantiate=False, fail_untyped=False, skip=set(supplied))
    return parser


def misspelt(kind: type, given: Mapping[str, Any], where: str, supplied: Collection[str] = ()) -> Iterator[str]:
    """A message for each argument that there is not, here and in the classes among the arguments; nothing is made."""
    parameters = {n: p for n, p in constructor_parameters(kind).items() if n not in supplied}
    for name, value in given.items():
        if name in parameters:
            for slot in _slots(kind, name, value, f"{where}.{name}"):
                try:
                    found = _named(*slot)
                except ConfigError as error:  # a class that there is not
                    yield str(error)
                else:
                    yield from misspelt(*found) if found is not None else ()
        elif name not in supplied:
            choices = nearest(str(name), parameters) if parameters else " It takes no arguments."
            yield f"{where} ({_known(kind)}) has no argument {name!r}.{choices}"


def refuse(wrong: Sequence[str]) -> None:
    """Raises one error that tells all that is wrong, if anything is: a line for each if there are several."""
    if len(wrong) > 1:
        raise ConfigError("\n".join([f"{len(wrong)} names are wrong:", *wrong]))
    if wrong:
        raise ConfigError(wrong[0])


def check_names(kind: type, given: Mapping[str, Any], where: str, supplied: Collection[str] = ()) -> None:
    """Raises unless the constructor takes every argument and none that it needs is missing."""
    refuse(list(misspelt(kind, given, where, supplied)))
    parameters = {n: p for n, p in constructor_parameters(kind).items() if n not in supplied}
    for name in given:
        if name in supplied:
            raise ConfigError(f"{where}.{name} follows from the data and cannot be set.")
    missing = [n for n, p in parameters.items() if p.default is p.empty and n not in given]
    if missing:
        raise ConfigError(f"{where} ({_known(kind)}) needs {', '.join(missing)}.")


def _known(kind: type) -> str:
    name = name_of(kind)
    return kind.__name__ if "." in name else name


def _check_spelling(given: Any, where: str) -> None:
    """Refuses jsonargparse's own way to name classes, which would make any class of any library, unchecked."""
    if isinstance(given, Mapping):
        for name, inner in given.items():
            _check_spelling(name, where)
            _check_spelling(inner, f"{where}.{name}")
    elif isinstance(given, list | tuple):
        for inner in given:
            _check_spelling(inner, where)
    elif isinstance(given, str) and "class_path" in given:
        raise ConfigError(f"{where}: a class is named by `class: short_name`, and its arguments stand beside it.")


Slot = tuple[tuple[Any, ...], Any, str, Any]
"""A place where a class may stand: the types that are allowed there, what is given, the key, and the default."""


def _nested(owner: type, argument: str, value: Any, where: str) -> Any:
    """`entmax` or `{class: entmax, alpha: 1.3}` as jsonargparse writes it, with the class found and tried."""
    found = [_class_of(*slot) for slot in _slots(owner, argument, value, where)]
    return found if _item_types(owner, argument, value) else found[0]


def _slots(owner: type, argument: str, value: Any, where: str) -> list[Slot]:
    """The places of an argument's classes: itself, or each of its items."""
    items = _item_types(owner, argument, value)
    if items:
        return [(items, inner, f"{where}[{i}]", None) for i, inner in enumerate(value)]
    return [(_members(hint_of(owner, argument)), value, where, constructor_parameters(owner)[argument].default)]


def _item_types(owner: type, argument: str, value: Any) -> tuple[Any, ...]:
    """Of what the items of a list must be; nothing if the value is no list."""
    hints = _members(hint_of(owner, argument))
    several = next((typing.get_args(hint) for hint in hints if typing.get_origin(hint) in (list, Sequence)), None)
    return _members(several[0]) if several is not None and isinstance(value, list | tuple) else ()


def _class_of(kinds: tuple[Any, ...], value: Any, where: str, usual: Any) -> Any:
    found = _named(kinds, value, where, usual)
    if found is None:
        return value
    part = Part(*found)
    part.make()
    return {"class_path": f"{part.kind.__module__}.{part.kind.__qualname__}", "init_args": part.spelled()}


def _named(kinds: tuple[Any, ...], value: Any, where: str, usual: Any) -> tuple[type, dict[str, Any], str] | None:
    """The class that is described, its arguments and where it stands; None of a value that describes none."""
    classes = (kind for kind in kinds if isinstance(kind, type) and kind is not Any)
    base = next((kind for kind in classes if kind.__module__ != "builtins"), None)
    if base is None:
        return None
    value = spell_out(value)
    if isinstance(value, base):
        fix = f"Give its class and arguments: partial({type(value).__name__}, ...)."
        raise ConfigError(f"{where}: an instance cannot be saved with the run. {fix}")
    if isinstance(value, str) and (str not in kinds or "." in value) and value not in _choices(kinds):
        value = {"class": value}
    if not isinstance(value, Mapping):
        return None  # a short name, which the constructor knows itself, or null
    name = value.get("class", usual if isinstance(usual, str) else None)
    if name is None:
        raise ConfigError(f"{where}: say which class, as in `class: short_name` or `class: your.own.Class`.")
    arguments = {name: inner for name, inner in value.items() if name != "class"}
    return find_class(name, base, where), arguments, where


def _choices(kinds: Collection[Any]) -> set[Any]:
    return {choice for kind in kinds if typing.get_origin(kind) is typing.Literal for choice in typing.get_args(kind)}


def _plain(value: Any) -> Any:
    """What jsonargparse holds, as a configuration writes it."""
    if isinstance(value, dict):
        if "class_path" in value:
            kind = find_class(value["class_path"], object, "")
            return {"class": name_of(kind), **_plain(value.get("init_args") or {})}
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(inner) for inner in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def hint_of(kind: type, name: str) -> Any:
    """The annotation of a constructor's argument."""
    known = {base.__name__: base for base, _ in registries()}  # a module may import them for type checkers alone
    for parent in kind.__mro__:  # an inherited constructor has the annotations of its own module
        if "__init__" in vars(parent):
            try:
                made = parent.__init__  # type: ignore[misc]
                return typing.get_type_hints(made, {**known, **getattr(inspect.unwrap(made), "__globals__", {})}).get(
                    name, Any
                )
            except NameError:
                return Any
    return Any


def _members(hint: Any) -> tuple[Any, ...]:
    """The alternatives of a union."""
    return (
        typing.get_args(hint)
        if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
        else (hint,)
    )


def _explained(error: Exception, kind: type, where: str, given: Mapping[str, Any]) -> ConfigError:
    """One line of jsonargparse's many: the key, what it should be, and what it is."""
    found = re.search(rf'key "{KEY}\.(\w+)', str(error))
    if found is None or found[1] not in given:
        return ConfigError(f"{where}: {' '.join(str(error).split())}")
    return ConfigError(f"{where}.{found[1]} must be {readable(hint_of(kind, found[1]))}, got {given[found[1]]!r}.")


def readable(hint: Any) -> str:
    """An annotation as a user reads it: "a whole number or null"."""
    members = _members(hint)
    if len(members) > 1:
        return " or ".join(readable(member) for member in members)
    if hint is type(None):
        return "null"
    if typing.get_origin(hint) is typing.Literal:
        return " or ".join(repr(choice) for choice in typing.get_args(hint))
    names = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
    plain = str(hint).replace("typing.", "").replace("collections.abc.", "")
    return names.get(hint, hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else plain)
