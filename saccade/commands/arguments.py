"""What argparse needs to know about a command, from the signature and the docstring of its function."""

from __future__ import annotations

import argparse
import inspect
import re
import shutil
import textwrap
import typing
from collections.abc import Callable
from types import UnionType
from typing import Any


def usage_of(name: str, function: Callable[..., None]) -> str:
    """One line: the options are listed below it."""
    words = [f"saccade {name}"]
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            words += [f"--{parameter.name} {parameter.name.upper()}"] if parameter.default is parameter.empty else []
        elif parameter.kind is not parameter.VAR_KEYWORD:
            optional = parameter.default is not parameter.empty or parameter.annotation == "list[str]"
            words.append(f"[{parameter.name}]" if optional else parameter.name)
    return " ".join([*words, "[options]", *(["[--section.argument value]"] if takes(function, "overrides") else [])])


def wrapped(text: str) -> str:
    """Paragraphs as wide as the terminal; indented lines are commands, and stay as they are."""
    width = max(shutil.get_terminal_size().columns - 2, 20)
    paragraphs = text.split("\n\n")
    return "\n\n".join(p if p.startswith(" ") else textwrap.fill(p, width) for p in paragraphs)


def takes(function: Callable[..., None], name: str) -> bool:
    """Whether a command takes arguments of a configuration (`overrides`) or options of a task (`options`)."""
    return any(p.kind is p.VAR_KEYWORD and p.name == name for p in inspect.signature(function).parameters.values())


def list_parameters(function: Callable[..., None]) -> list[str]:
    """The positional parameters that take any number of values."""
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and str(p.annotation).startswith("list[")]


def add_argument(parser: argparse.ArgumentParser, parameter: inspect.Parameter, kind: Any, text: str) -> None:
    """Adds a parameter: a positional argument, or an option if it is keyword-only."""
    text = text.replace("%", "%%")  # which argparse formats
    if parameter.kind is parameter.KEYWORD_ONLY:
        flag = f"--{parameter.name.replace('_', '-')}"
        if kind is bool:
            parser.add_argument(flag, action="store_true", help=text)
        elif typing.get_origin(scalar(kind)) is list:
            parser.add_argument(flag, action="append", type=typing.get_args(scalar(kind))[0], help=text)
        elif parameter.default is parameter.empty:
            parser.add_argument(flag, type=scalar(kind), required=True, help=text)
        else:
            shown = text if parameter.default is None else f"{text.removesuffix('.')} (default: {parameter.default})."
            sign = {int: "N", float: "X"}.get(scalar(kind))
            parser.add_argument(flag, type=reader(scalar(kind)), default=parameter.default, help=shown, metavar=sign)
    elif typing.get_origin(kind) is list:
        parser.add_argument(parameter.name, nargs="*", type=reader(typing.get_args(kind)[0]), help=text)
    elif parameter.default is parameter.empty:
        parser.add_argument(parameter.name, type=kind, help=text)
    else:
        parser.add_argument(parameter.name, nargs="?", type=scalar(kind), default=parameter.default, help=text)


def reader(kind: Any) -> Callable[[str], Any]:
    """Reads the value of an option, with an error in plain words."""
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
