"""The options of a run's task as options of a command."""

from __future__ import annotations

import argparse
import dataclasses
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saccade.commands.arguments import reader, scalar, split_docstring

if TYPE_CHECKING:
    from saccade.tasks import Task

OF_TEXTS = {"--lm", "--lm-weight", "--stream"}
"""Options for tasks that generate text: the help of other runs leaves them out."""


def add_task_options(parser: argparse.ArgumentParser, command: str, given: Sequence[str]) -> None:
    """Adds the options of the named run's task, since each task has its own options for predictions."""
    task = _task(parser, given)
    if task is None:
        return
    from saccade.configuration.classes import name_of

    if not task.writes_texts:
        for action in parser._actions:
            if OF_TEXTS.intersection(action.option_strings):
                action.help = argparse.SUPPRESS
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


def other_task(parser: argparse.ArgumentParser, given: Sequence[str], option: str) -> str:
    """A hint for an option that predictions of other tasks have; nothing if none has it.

    Args:
        parser: the command's.
        given: the command line.
        option: its name, as of an argument in Python.
    """
    from saccade.configuration.classes import name_of
    from saccade.tasks import tasks

    having = [n for n, kind in tasks.items() if option in {field.name for field in dataclasses.fields(kind.options)}]
    task = _task(parser, given)
    if not having or (task is not None and option in {field.name for field in dataclasses.fields(task.options)}):
        return ""
    if task is None:
        from saccade.runs.folder import check_run

        try:
            check_run(next(iter(_words(parser, given)[1:]), ""))  # without its run, the option cannot be known
        except FileNotFoundError as error:
            parser.error(str(error))
        return ""
    return f" It is an option of {', '.join(having)}; the task of this run is {name_of(task)}."


def check_required(parser: argparse.ArgumentParser, given: Sequence[str]) -> None:
    """Ends with an error if a required option is missing, but its value was given without the flag."""
    if {"-h", "--help"} & {*given}:
        return
    flags = {argument.partition("=")[0] for argument in given}
    places = sum(not action.option_strings for action in parser._actions)
    further = _words(parser, given)[1 + places :]
    for action in parser._actions:
        if action.required and action.option_strings and further and not flags.intersection(action.option_strings):
            option = action.option_strings[0]
            parser.error(f"{option} is missing. Did you mean {option} {further[0]:.60}?")


def _words(parser: argparse.ArgumentParser, given: Sequence[str]) -> list[str]:
    """The command and what it is given without the name of an option."""
    flags = {option for action in parser._actions if action.nargs != 0 for option in action.option_strings}
    values = {place + 1 for place, argument in enumerate(given) if argument in flags}
    return [argument for place, argument in enumerate(given) if place not in values and not argument.startswith("-")]


def _task(parser: argparse.ArgumentParser, given: Sequence[str]) -> type[Task] | None:
    """The class of the task of the run that a command line names, if it names one."""
    words = [Path(word) for word in _words(parser, given) if "\0" not in word]
    folder = next((word for word in words[1:] if (word / "config.yaml").is_file()), None)
    if folder is None:
        return _foreign_task(words[1:])
    from saccade.configuration.files import read_config
    from saccade.runs.plan import task_class

    return task_class(read_config(folder / "config.yaml"), trust="--trust-classes" in given)


def _foreign_task(folders: Sequence[Path]) -> type[Task] | None:
    """The task of a GPT-2 that another library saved, if one of the folders holds such a model."""
    if not any((folder / "config.json").is_file() for folder in folders):
        return None
    from saccade import gpt2
    from saccade.tasks import LanguageModelling

    return LanguageModelling if any(gpt2.is_folder(folder) for folder in folders) else None


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
