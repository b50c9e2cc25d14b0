"""The command line: a table of functions whose docstrings are the help.

Nothing heavy is imported before it is needed, so that help, lists and refusals answer at once.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import inspect
import io
import json
import os
import re
import shutil
import sys
import textwrap
import typing
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import UnionType
from typing import Any

import saccade
from saccade.commands.aligning import align
from saccade.commands.columns import parse_column, parse_columns
from saccade.commands.doctor import doctor
from saccade.commands.embedding import embed
from saccade.commands.evaluating import evaluate
from saccade.commands.explaining import explain
from saccade.commands.exporting import export
from saccade.commands.members import list_members, select_scores, show_member
from saccade.commands.predicting import predict
from saccade.commands.serving import serve
from saccade.commands.training import copy_config, explain_config, train_model, validate_config
from saccade.configuration import ConfigError
from saccade.configuration.catalogue import Parameter, catalogue, described
from saccade.configuration.sections import SECTIONS
from saccade.registry import closest, nearest

__all__ = ["COMMANDS", "build_parser", "main"]

COMMANDS: dict[str, Callable[..., None]] = {
    "train": train_model,
    "evaluate": evaluate,
    "predict": predict,
    "align": align,
    "explain": explain,
    "export": export,
    "serve": serve,
    "validate": validate_config,
    "copy": copy_config,
    "list": list_members,
    "show": show_member,
    "select": select_scores,
    "embed": embed,
    "doctor": doctor,
}

OVERRIDE = re.compile(rf"--([A-Za-z_][\w-]*\.[\w.-]+|{'|'.join(SECTIONS)})(?:=(.*))?", re.DOTALL)
"""`--model.hidden_dim 64`, `--model.hidden_dim=64`, or a whole section as `--model '{class: rnnsearch}'`."""

ROLE = re.compile(r"--(data\.(?!(?:columns|header|bad[_-]rows)\b)[A-Za-z_][\w-]*)(?:=(.*))?", re.DOTALL)
"""`--data.text body`, for commands without a configuration."""

EXPECTED = (ValueError, TypeError, OSError, ModuleNotFoundError, FloatingPointError)
"""What bad usage or bad input raises: printed as one line. With SACCADE_TRACEBACK=1, all of it is."""


SIMPLE = {"bool": bool, "int": int, "float": float, "str": str}
"""What options of formats may be, by annotation."""

LONGEST = 1200
"""Characters of an error: names of files may have thousands."""

SHORTER = {"--data.columns": "--columns", "--data.header": "--header", "--data.bad_rows": "--bad-rows"}
"""How commands without a configuration spell the options that errors of data files advise."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; exits with 0, with 2 if the command line or the input is wrong, with 130 if interrupted."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            return _main(given)
    except KeyboardInterrupt:
        print("saccade: interrupted", file=sys.stderr)
        return 130


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    """Prints a warning for users, who are not interested in the line of code that gave it."""
    print(f"WARNING: {message}", file=sys.stderr)


def _main(given: list[str]) -> int:
    parser, commands = build_parser()
    command = next((a for a in given if not a.startswith("-")), None)
    if command is not None and command not in COMMANDS:
        parser.error(f"Unknown command {command!r}.{nearest(command, COMMANDS)}")
    overrides: dict[str, str] = {}
    if command is not None and _takes(COMMANDS[command], "overrides"):
        given, overrides = split_overrides(given, parser)
    elif command is not None and "columns" in inspect.signature(COMMANDS[command]).parameters:
        given = join_columns(given, parser)
    if command is not None and _takes(COMMANDS[command], "options"):
        code = _run(command, lambda: add_task_options(commands[command], command, given))
        if code:
            return code
    try:
        options = vars(_parse(parser, given, command, commands))
    except SystemExit as leave:
        config = _asked_to_explain(parser, given) if command == "train" and leave.code == 0 else None
        if config is None:
            raise
        return _run("train", lambda: print("\n" + explain_config(config, overrides)))
    name = options.pop("command")
    if name is None:
        parser.print_help()
        return 0
    return _run(name, lambda: COMMANDS[name](**options, **overrides))


def _run(name: str, command: Callable[[], None]) -> int:
    try:
        command()
        sys.stdout.flush()
    except BrokenPipeError:  # `saccade list | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt as interrupt:
        if name != "train" or not interrupt.args:  # which has said how to continue
            print(f"saccade {name}: interrupted", file=sys.stderr)
        return 130
    except EXPECTED as error:
        if os.environ.get("SACCADE_TRACEBACK"):
            raise
        text = _in_lines(error)
        if not _takes(COMMANDS[name], "overrides"):  # which has the same options under shorter names
            for long, short in SHORTER.items():
                text = text.replace(long, short)
        print(f"saccade {name}: {_printable(text)}", file=sys.stderr)
        return 2
    return 0


def _printable(text: str) -> str:
    """The text without halves of characters, which stand for any bytes in names of files and cannot be printed."""
    return text.encode("utf-8", "backslashreplace").decode()


class _Parser(argparse.ArgumentParser):
    """Prints whatever it was given."""

    def _print_message(self, message: str, file: Any = None) -> None:
        super()._print_message(_printable(message), file)


def _in_lines(error: BaseException) -> str:
    """An error in one line; an error in a configuration in one line for each wrong name."""
    if isinstance(error, OSError) and error.strerror:  # without Python's "[Errno 21]"
        place = "" if error.filename is None else f"{error.filename!r:.200}: "
        return f"{place}{error.strerror}."
    lines = str(error).splitlines() if isinstance(error, ConfigError) else [str(error)]
    short = (" ".join(line.split()) for line in lines)
    return "\n  ".join(line if len(line) <= LONGEST else f"{line[:LONGEST]} ..." for line in short)


def build_parser() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """Positional parameters become positional arguments, keyword-only ones become options; also the commands'."""
    parser = _Parser(
        prog="saccade",
        description="The attention toolkit for PyTorch: attention = score x selection x aggregation.",
        epilog="`saccade COMMAND --help` explains each command. Try `saccade list configs`, `saccade show sparsemax`, "
        "`saccade select 2 1.6 0.5 -1`. Exit codes: 0 done, 2 bad usage or input, 130 interrupted.",
    )
    parser.add_argument("--version", action="version", version=f"saccade {saccade.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", title="commands")
    made: dict[str, argparse.ArgumentParser] = {}
    for name, function in COMMANDS.items():
        text, helps = _split_docstring(function)
        made[name] = commands.add_parser(
            name,
            help=text.splitlines()[0],
            description=_wrapped(text),
            usage=_usage(name, function),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        types = typing.get_type_hints(function)
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind is not parameter.VAR_KEYWORD:
                _add_argument(made[name], parameter, types[parameter.name], helps[parameter.name])
        if _takes(function, "format_options"):
            add_format_options(made[name])
    return parser, made


def add_format_options(parser: argparse.ArgumentParser) -> None:
    """Adds what the constructors of the export formats take; one option may belong to several of them."""
    group = parser.add_argument_group("options of formats")
    found: dict[str, list[tuple[str, Parameter, str]]] = {}
    for format, member in catalogue()["formats"].members.items():
        helps = _split_text(member.doc)[1]
        for parameter in member.parameters.values():
            found.setdefault(parameter.name, []).append((format, parameter, helps.get(parameter.name, "")))
    for name, users in found.items():
        texts = {f"{format}: {text}": None for format, _, text in users}
        kind = users[0][1].annotation.partition(" |")[0]
        _add_option(group, f"--{name.replace('_', '-')}", None, SIMPLE.get(kind, str), " ".join(texts))


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
    several = [task.options, *([task.explain_options] if command == "explain" else [])]
    taken = {option for action in parser._actions for option in action.option_strings}
    for options in several:
        helps: dict[str, str] = {}
        for kind in reversed(options.__mro__[:-1]):  # what a class does not explain, its base does
            helps |= _split_docstring(kind)[1]
        hints = typing.get_type_hints(options)
        for field in dataclasses.fields(options):
            flag = f"--{field.name.replace('_', '-')}"
            if flag not in taken and field.name != "name":
                _add_option(group, flag, field, _scalar(hints[field.name]), helps.get(field.name, ""))


def _add_option(group: Any, flag: str, field: dataclasses.Field[Any] | None, kind: Any, text: str) -> None:
    if kind is bool:
        group.add_argument(flag, action="store_true", default=None, help=text)
    elif typing.get_origin(kind) is list or (field is not None and field.metadata.get("several")):
        group.add_argument(flag, action="append", help=text)
    else:
        known = kind in (int, float, str)
        default = None if field is None else field.default
        shown = text if default is None else f"{text.removesuffix('.')} (default: {default})."
        sign = {int: "N", float: "X"}.get(kind)
        group.add_argument(flag, type=_reader(kind) if known else str, default=None, help=shown, metavar=sign)


def _usage(name: str, function: Callable[..., None]) -> str:
    """One line: the options are listed below it."""
    words = [f"saccade {name}"]
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            words += [f"--{parameter.name} {parameter.name.upper()}"] if parameter.default is parameter.empty else []
        elif parameter.kind is not parameter.VAR_KEYWORD:
            optional = parameter.default is not parameter.empty or parameter.annotation == "list[str]"
            words.append(f"[{parameter.name}]" if optional else parameter.name)
    return " ".join([*words, "[options]", *(["[--section.argument value]"] if _takes(function, "overrides") else [])])


def _wrapped(text: str) -> str:
    """Paragraphs as wide as the terminal; indented lines are commands, and stay as they are."""
    width = max(shutil.get_terminal_size().columns - 2, 20)
    paragraphs = text.split("\n\n")
    return "\n\n".join(p if p.startswith(" ") else textwrap.fill(p, width) for p in paragraphs)


def split_overrides(
    given: Sequence[str], parser: argparse.ArgumentParser, pattern: re.Pattern[str] = OVERRIDE
) -> tuple[list[str], dict[str, str]]:
    """Separates `--section.argument value` from the rest of the command line."""
    rest: list[str] = []
    overrides: dict[str, str] = {}
    remaining = iter(given)
    for argument in remaining:
        match = pattern.fullmatch(argument)
        if match is None:
            rest.append(argument)
            continue
        value = next(remaining, None) if match[2] is None else match[2]
        if value is None or (match[2] is None and value.startswith("--")):
            parser.error(f"{argument} needs a value.")
        overrides[match[1].replace("-", "_")] = value
    return rest, overrides


def join_columns(given: Sequence[str], parser: argparse.ArgumentParser) -> list[str]:
    """`--data.text body`, as for a training, under `--columns`."""
    rest, found = split_overrides(given, parser, ROLE)
    columns = {key.removeprefix("data."): parse_column(value) for key, value in found.items()}
    if not columns:
        return rest
    for place, argument in enumerate(rest):
        if argument == "--columns" and place + 1 < len(rest):
            columns = {**(parse_columns(rest[place + 1]) or {}), **columns}
        elif argument.startswith("--columns="):
            columns = {**(parse_columns(argument.partition("=")[2]) or {}), **columns}
    return [*rest, "--columns", json.dumps(columns)]


def _takes(function: Callable[..., None], name: str) -> bool:
    """Whether a command takes arguments of a configuration (`overrides`) or options of a task (`options`)."""
    return any(p.kind is p.VAR_KEYWORD and p.name == name for p in inspect.signature(function).parameters.values())


def _parse(
    parser: argparse.ArgumentParser,
    given: Sequence[str],
    command: str | None,
    commands: dict[str, argparse.ArgumentParser],
) -> argparse.Namespace:
    """The options; an unknown one is an error that names the nearest."""
    options, unknown = parser.parse_known_args(given)
    wrong = next((argument.partition("=")[0] for argument in unknown if argument.startswith("-")), None)
    if wrong is not None and command is not None:
        sections = _takes(COMMANDS[command], "overrides")
        flags = [option for action in commands[command]._actions for option in action.option_strings]
        flags = [flag for flag in flags if flag.startswith("--") and flag != "--help"]
        flags += [f"--{section}" for section in SECTIONS if sections]
        more = " Arguments of the configuration are set as --section.argument value." if sections else ""
        known = {**(_section_arguments() if sections else {}), **{flag[2:].replace("-", "_"): flag for flag in flags}}
        close = closest(wrong.lstrip("-").replace("-", "_"), known)
        hint = "" if close is None else f" Did you mean {known[close]}?"
        parser.error(f"{command} has no option {wrong:.60}.{hint} Choose from: {', '.join(sorted(flags))}.{more}")
    several = None if command is None else next(iter(_lists(COMMANDS[command])), None)
    if unknown and several is None and command is not None:
        commands[command].error(f"there is one argument too many: {unknown[0]!r:.60}")
    if several is None or not unknown:
        return parser.parse_args(given)
    getattr(options, several).extend(unknown)  # inputs after an option, which argparse does not take
    return options


def _section_arguments() -> dict[str, str]:
    """How to write the arguments of sections that are always of one class: `max_steps` as `--trainer.max_steps`."""
    usual = {name: section.usual for name, section in SECTIONS.items() if section.kind is None and section.usual}
    return {argument: f"--{name}.{argument}" for name, path in usual.items() for argument in described(path).parameters}


def _lists(function: Callable[..., None]) -> list[str]:
    """The positional parameters that take any number of values."""
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and str(p.annotation).startswith("list[")]


def _asked_to_explain(parser: argparse.ArgumentParser, given: Sequence[str]) -> str | None:
    """The configuration of `saccade train my.yaml --help`, or that of the run which `--resume` names."""
    wanted = [argument for argument in given if argument not in ("-h", "--help")]
    if len(wanted) == len(given):
        return None
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # help was asked for, and has been printed
            options, _ = parser.parse_known_args(wanted)
    except SystemExit:
        return None
    if options.config is None and options.resume is not None:
        return os.path.join(options.resume, "config.yaml")
    config: str | None = options.config
    return config


def _add_argument(parser: argparse.ArgumentParser, parameter: inspect.Parameter, kind: Any, text: str) -> None:
    if parameter.kind is parameter.KEYWORD_ONLY:
        flag = f"--{parameter.name.replace('_', '-')}"
        if kind is bool:
            parser.add_argument(flag, action="store_true", help=text)
        elif typing.get_origin(_scalar(kind)) is list:
            parser.add_argument(flag, action="append", type=typing.get_args(_scalar(kind))[0], help=text)
        elif parameter.default is parameter.empty:
            parser.add_argument(flag, type=_scalar(kind), required=True, help=text)
        else:
            shown = text if parameter.default is None else f"{text.removesuffix('.')} (default: {parameter.default})."
            sign = {int: "N", float: "X"}.get(_scalar(kind))
            parser.add_argument(flag, type=_reader(_scalar(kind)), default=parameter.default, help=shown, metavar=sign)
    elif typing.get_origin(kind) is list:
        parser.add_argument(parameter.name, nargs="*", type=_reader(typing.get_args(kind)[0]), help=text)
    elif parameter.default is parameter.empty:
        parser.add_argument(parameter.name, type=kind, help=text)
    else:
        parser.add_argument(parameter.name, nargs="?", type=_scalar(kind), default=parameter.default, help=text)


def _reader(kind: Any) -> Callable[[str], Any]:
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


def _scalar(kind: Any) -> Any:
    """`int` of `int | None`."""
    return typing.get_args(kind)[0] if isinstance(kind, UnionType) else kind


def _split_docstring(function: Any) -> tuple[str, dict[str, str]]:
    """The text before `Args:`, and the help of each argument."""
    return _split_text(inspect.getdoc(function) or "")


def _split_text(doc: str) -> tuple[str, dict[str, str]]:
    text, _, listed = doc.partition("\n\nArgs:\n")
    entries = re.sub(r"\n {5,}", " ", listed)  # continuation lines
    parts = (line.strip().partition(": ") for line in entries.splitlines())
    return text, {name: help_text for name, _, help_text in parts}
