"""Parses a command line; the error for an unknown option suggests the one that was probably meant."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from saccade.commands.arguments import list_argument, takes
from saccade.commands.task_options import check_required, other_task
from saccade.commands.training import misspelt
from saccade.configuration.catalogue import catalogue, described
from saccade.configuration.files import TABLES
from saccade.configuration.sections import SECTIONS
from saccade.registry import closest

OTHER_NAMES = {
    "train": {
        **dict.fromkeys(("cross_validate", "cross_validation", "cv", "k_fold", "k_folds", "kfold"), "--folds"),
        "metrics": "--task.metrics",
    }
}
"""What options are called elsewhere, where the spelling gives no hint."""


class Command(NamedTuple):
    """A command that is going to run."""

    name: str
    function: Callable[..., None]
    parser: argparse.ArgumentParser


def parse(
    parser: argparse.ArgumentParser,
    given: Sequence[str],
    command: Command | None = None,
    overrides: Mapping[str, str] | None = None,
) -> argparse.Namespace:
    """The options of a command line.

    Args:
        parser: that of all commands.
        given: the command line.
        command: the command that it names, if it names one.
        overrides: the arguments of a configuration on it, which are checked too if an option does not exist.
    """
    if command is None:
        return parser.parse_args(given)
    check_required(command.parser, given)
    options, unknown = parser.parse_known_args(given)
    wrong = list(dict.fromkeys(argument.partition("=")[0] for argument in unknown if argument.startswith("-")))
    if wrong:
        named = [getattr(options, "config", None), *unknown]
        others = misspelt([name for name in named if name and name not in wrong], overrides) if overrides else ()
        command.parser.error("\n  ".join([_no_options(wrong, given, command), *others]))
    several = list_argument(command.function)
    if unknown and several is None:
        data = takes(command.function, "overrides") and os.path.exists(unknown[0])
        files = _joined((overrides or {}).get("data.train"), unknown)
        hint = f". Is that the data? --data.train {files}" if data else ""
        command.parser.error(f"there is one argument too many: {unknown[0]!r:.60}{hint}")
    if several is None or not unknown:
        return parser.parse_args(given)
    getattr(options, several).extend(unknown)  # inputs after an option, which argparse does not take
    return options


def _joined(file: str | None, others: Sequence[str]) -> str:
    """How to name several files: tables in a list, parallel texts with commas."""
    files = [file, *others] if file else [others[0]]
    if len(files) > 1 and any(name.endswith(TABLES) for name in files):
        return f"'[{', '.join(files)}]'"
    return ",".join(files)


def _no_options(wrong: Sequence[str], given: Sequence[str], command: Command) -> str:
    """The message for options that a command does not have."""
    sections = takes(command.function, "overrides")
    shown = [action for action in command.parser._actions if action.help is not argparse.SUPPRESS]
    flags = [option for action in shown for option in action.option_strings]
    flags = [flag for flag in flags if flag.startswith("--") and flag != "--help"]
    flags += [f"--{section}" for section in SECTIONS if sections]
    known = {**(_section_arguments() if sections else {}), **{flag[2:].replace("-", "_"): flag for flag in flags}}
    others = _class_arguments() if sections else {}
    problems = list[str]()
    for option in wrong:
        plain = option.lstrip("-").replace("-", "_")
        meant = OTHER_NAMES.get(command.name, {}).get(plain) or _meant(plain, known, others)
        hint = "" if meant is None else f" Did you mean {meant}?"
        if takes(command.function, "options"):
            hint = other_task(command.parser, given, plain) or hint
        problems.append(f"{command.name} has no option {option:.60}.{hint}")
    more = " Arguments of the configuration are set as --section.argument value." if sections else ""
    return f"{' '.join(problems)} Choose from: {', '.join(sorted(flags))}.{more}"


def _section_arguments() -> dict[str, str]:
    """How to write the arguments of sections that are always of one class: `max_steps` as `--trainer.max_steps`."""
    usual = {name: section.usual for name, section in SECTIONS.items() if section.kind is None and section.usual}
    return {argument: f"--{name}.{argument}" for name, path in usual.items() for argument in described(path).parameters}


def _class_arguments() -> dict[str, str]:
    """The same for those of models and tasks, whichever class has them: `selection` as `--model.selection`."""
    kinds = [(name, catalogue()[section.kind]) for name, section in SECTIONS.items() if section.kind is not None]
    return {
        argument: f"--{name}.{argument}"
        for name, kind in kinds
        for member in kind.members.values()
        for argument in member.parameters
    }


def _meant(name: str, *known: Mapping[str, str]) -> str | None:
    """The option that a name probably means: the same one, or else the closest."""
    same = (options[name] for options in known if name in options)
    close = (options[found] for options in known if (found := closest(name, options)) is not None)
    return next(same, None) or next(close, None)
