"""The options of a run's task as options of a command."""

from __future__ import annotations

import argparse
import dataclasses
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from saccade.commands.arguments import reader, scalar, split_docstring


def add_task_options(parser: argparse.ArgumentParser, command: str, given: Sequence[str]) -> None:
    """Adds the options of the task of the run that a command line names: predictions of each task have their own."""
    flags = {option for action in parser._actions if action.nargs != 0 for option in action.option_strings}
    values = {place + 1 for place, argument in enumerate(given) if argument in flags}  # of options, not the run
    words = [
        Path(argument)
        for place, argument in enumerate(given)
        if place not in values and not argument.startswith("-") and "\0" not in argument
    ]
    folder = next((word for word in words[1:] if (word / "config.yaml").is_file()), None)
    if folder is None:
        return
    from saccade.configuration.classes import name_of
    from saccade.configuration.files import read_config
    from saccade.runs.plan import task_class

    task = task_class(read_config(folder / "config.yaml"), trust="--trust-classes" in given)
    group = parser.add_argument_group(f"options of its task, {name_of(task)}")
    if command in ("predict", "explain"):
        for role in task.named:
            add_option(group, f"--{role}", None, list[str], f"the {role} of an input; may be given several times.")
    several = [task.options, *([task.explain_options] if command == "explain" else [])]
    taken = {option for action in parser._actions for option in action.option_strings}
    for options in several:
        helps: dict[str, str] = {}
        for kind in reversed(options.__mro__[:-1]):  # what a class does not explain, its base does
            helps |= split_docstring(kind)[1]
        hints = typing.get_type_hints(options)
        for field in dataclasses.fields(options):
            flag = f"--{field.name.replace('_', '-')}"
            if flag not in taken and field.name != "name":
                add_option(group, flag, field, scalar(hints[field.name]), helps.get(field.name, ""))


def add_option(group: Any, flag: str, field: dataclasses.Field[Any] | None, kind: Any, text: str) -> None:
    """Adds one option, with the default and the metadata of its field if it has one."""
    text = text.replace("%", "%%")  # which argparse formats
    if kind is bool:
        group.add_argument(flag, action="store_true", default=None, help=text)
    elif typing.get_origin(kind) is list or (field is not None and field.metadata.get("several")):
        group.add_argument(flag, action="append", help=text)
    else:
        known = kind in (int, float, str)
        default = None if field is None else field.default
        shown = text if default is None else f"{text.removesuffix('.')} (default: {default})."
        sign = {int: "N", float: "X"}.get(kind)
        group.add_argument(flag, type=reader(kind) if known else str, default=None, help=shown, metavar=sign)
