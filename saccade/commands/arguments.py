"""What argparse needs to know about a command, from the signature and the docstring of its function.

Positional parameters are positional arguments, keyword-only ones are options. A keyword-only parameter that is a
dataclass stands for a group of options, one for each field.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import re
import shutil
import textwrap
import typing
from collections.abc import Callable
from types import UnionType
from typing import Any, NamedTuple

REQUIRED = inspect.Parameter.empty


class Argument(NamedTuple):
    """An argument of a command."""

    name: str
    kind: Any
    """Its type."""
    default: Any
    """`REQUIRED` if it has none."""
    help: str
    option: bool = True
    """Whether it has a flag; otherwise it is known by its place."""
    group: str = ""
    """The parameter of the function that it is a field of."""

    @property
    def flag(self) -> str:
        """As it is written."""
        return flag_of(self.name)


def flag_of(name: str) -> str:
    """The option of a parameter or field."""
    return f"--{name.replace('_', '-')}"


def arguments_of(function: Callable[..., None]) -> list[Argument]:
    """The arguments of a command, without those of its task or configuration."""
    hints, helps = typing.get_type_hints(function), split_docstring(function)[1]
    found: list[Argument] = []
    for parameter in inspect.signature(function).parameters.values():
        name, kind = parameter.name, hints[parameter.name]
        if dataclasses.is_dataclass(kind):
            found += _fields(name, kind)
        elif parameter.kind is not parameter.VAR_KEYWORD:
            option = parameter.kind is parameter.KEYWORD_ONLY
            found.append(Argument(name, kind, parameter.default, helps[name], option))
    return found


def _fields(group: str, kind: Any) -> list[Argument]:
    hints, helps = typing.get_type_hints(kind), split_docstring(kind)[1]
    return [
        Argument(field.name, hints[field.name], field.default, helps[field.name], group=group)
        for field in dataclasses.fields(kind)
    ]


def grouped(function: Callable[..., None], options: dict[str, Any]) -> dict[str, Any]:
    """What to call a command with: the options of a group become one value, which checks them."""
    hints = typing.get_type_hints(function)
    given: dict[str, dict[str, Any]] = {}
    for argument in arguments_of(function):
        if argument.group:
            given.setdefault(argument.group, {})[argument.name] = options.pop(argument.name)
    return {**options, **{group: hints[group](**values) for group, values in given.items()}}


def changed(options: Any, *names: str) -> list[str]:
    """The flags among these, or among all of a group of options, that differ from their defaults."""
    fields = [field for field in dataclasses.fields(options) if not names or field.name in names]
    return [flag_of(field.name) for field in fields if getattr(options, field.name) != field.default]


def usage_of(name: str, function: Callable[..., None]) -> str:
    """One line: the options are listed below it."""
    words = [f"saccade {name}"]
    for argument in arguments_of(function):
        required = argument.default is REQUIRED
        if argument.option:
            words += [f"{argument.flag} {argument.name.upper()}"] if required else []
        else:
            words.append(
                argument.name if required and typing.get_origin(argument.kind) is not list else f"[{argument.name}]"
            )
    return " ".join([*words, "[options]", *(["[--section.argument value]"] if takes(function, "overrides") else [])])


def wrapped(text: str) -> str:
    """Wraps paragraphs to the width of the terminal; indented lines are commands and stay as they are."""
    width = max(shutil.get_terminal_size().columns - 2, 20)
    paragraphs = text.split("\n\n")
    return "\n\n".join(p if p.startswith(" ") else textwrap.fill(p, width) for p in paragraphs)


def takes(function: Callable[..., None], name: str) -> bool:
    """Whether a command takes arguments of a configuration (`overrides`) or options of a task (`options`)."""
    return any(p.kind is p.VAR_KEYWORD and p.name == name for p in inspect.signature(function).parameters.values())


def list_argument(function: Callable[..., None]) -> str | None:
    """The positional argument that takes any number of values, if there is one."""
    several = (a.name for a in arguments_of(function) if not a.option and typing.get_origin(a.kind) is list)
    return next(several, None)


def add_arguments(parser: argparse.ArgumentParser, function: Callable[..., None]) -> None:
    """Adds the arguments of a command, those of a group under a title of their own: what its class says."""
    hints = typing.get_type_hints(function)
    groups: dict[str, Any] = {"": parser}
    for argument in arguments_of(function):
        if argument.group not in groups:
            title = split_docstring(hints[argument.group])[0].splitlines()[0].removesuffix(".")
            groups[argument.group] = parser.add_argument_group(title[0].lower() + title[1:])
        _add(groups[argument.group], argument)


def _add(parser: Any, argument: Argument) -> None:
    text = argument.help.replace("%", "%%")  # which argparse formats
    kind, default = scalar(argument.kind), argument.default
    if not argument.option:
        if typing.get_origin(kind) is list:
            parser.add_argument(argument.name, nargs="*", type=reader(typing.get_args(kind)[0]), help=text)
        elif default is REQUIRED:
            parser.add_argument(argument.name, type=kind, help=text)
        else:
            parser.add_argument(argument.name, nargs="?", type=kind, default=default, help=text)
    elif kind is bool:
        parser.add_argument(argument.flag, action="store_true", help=text)
    elif typing.get_origin(kind) is list:
        parser.add_argument(argument.flag, action="append", type=typing.get_args(kind)[0], help=text)
    elif default is REQUIRED:
        parser.add_argument(argument.flag, type=kind, required=True, help=text)
    else:
        shown = text if default in (None, "") else f"{text.removesuffix('.')} (default: {default})."
        sign = {int: "N", float: "X"}.get(kind)
        parser.add_argument(argument.flag, type=reader(kind), default=default, help=shown, metavar=sign)


def reader(kind: Any) -> Callable[[str], Any]:
    """Parses the value of an option; errors are in plain words."""
    if kind not in (int, float):
        return str

    def read(text: str) -> Any:
        try:
            return kind(text)
        except ValueError:
            wanted = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"it takes {wanted}, got {text!r:.60}") from None

    return read


def scalar(kind: Any) -> Any:
    """`int` of `int | None`."""
    return typing.get_args(kind)[0] if isinstance(kind, UnionType) else kind


def split_docstring(function: Any) -> tuple[str, dict[str, str]]:
    """The text before `Args:`, and the help of each argument."""
    return split_text(inspect.getdoc(function) or "")


def split_text(doc: str) -> tuple[str, dict[str, str]]:
    """The same for the text of a docstring."""
    text, _, listed = doc.partition("\n\nArgs:\n")
    entries = re.sub(r"\n {5,}", " ", listed)  # continuation lines
    parts = (line.strip().partition(": ") for line in entries.splitlines())
    return text, {name: help_text for name, _, help_text in parts}
