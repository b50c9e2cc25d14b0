"""The command line: a table of functions whose docstrings are the help.

Nothing heavy is imported before it is needed, so help, lists and errors appear at once.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import saccade
from saccade.commands.aligning import align
from saccade.commands.arguments import add_arguments, arguments_of, grouped, split_docstring, takes, usage_of, wrapped
from saccade.commands.doctor import doctor
from saccade.commands.embedding import embed
from saccade.commands.evaluating import evaluate
from saccade.commands.explaining import explain
from saccade.commands.exporting import export
from saccade.commands.format_options import add_format_options
from saccade.commands.inspecting import inspect as inspect_model
from saccade.commands.lexicon import lexicon
from saccade.commands.members import list_members, select_scores, show_member
from saccade.commands.overrides import join_columns, split_overrides
from saccade.commands.parsing import Command, parse
from saccade.commands.predicting import predict
from saccade.commands.scoring import score
from saccade.commands.serving import serve
from saccade.commands.task_options import add_task_options
from saccade.commands.training import copy_config, explain_config, train_model, validate_config
from saccade.configuration import ConfigError
from saccade.registry import nearest

__all__ = ["COMMANDS", "build_parser", "main"]

COMMANDS: dict[str, Callable[..., None]] = {
    "train": train_model,
    "evaluate": evaluate,
    "predict": predict,
    "score": score,
    "align": align,
    "explain": explain,
    "inspect": inspect_model,
    "export": export,
    "serve": serve,
    "validate": validate_config,
    "copy": copy_config,
    "list": list_members,
    "show": show_member,
    "select": select_scores,
    "embed": embed,
    "lexicon": lexicon,
    "doctor": doctor,
}

EXPECTED = (ValueError, TypeError, OSError, ModuleNotFoundError, FloatingPointError)
"""What bad usage or bad input raises: printed as one line, or with a traceback if SACCADE_TRACEBACK=1."""


LONGEST = 1200
"""Characters of an error: names of files may have thousands."""

SHORTER = {"--data.columns": "--columns", "--data.header": "--header", "--data.bad_rows": "--bad-rows"}
"""How commands without a configuration spell the options that errors of data files advise."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; exits with 0, with 2 if the command line or the input is wrong, with 130 if interrupted."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with warnings.catch_warnings():
            return _main(given)
    except KeyboardInterrupt:
        print("saccade: interrupted", file=sys.stderr)
        return 130


def _warn(command: str | None, message: Warning | str, *_: Any, **__: Any) -> None:
    """Prints a warning without the line of code that raised it, which users do not need."""
    print(f"WARNING: {_as_spelt(command, str(message))}", file=sys.stderr)


def _as_spelt(command: str | None, text: str) -> str:
    """A message with the options of data files as this command spells them."""
    if command in COMMANDS and not takes(COMMANDS[command], "overrides"):
        for long, short in SHORTER.items():
            text = text.replace(long, short)
    return text


def _main(given: list[str]) -> int:
    command = next((a for a in given if not a.startswith("-")), None)
    warnings.showwarning = partial(_warn, command)
    parser, commands = build_parser(command or "")
    if command is not None and command not in COMMANDS:
        parser.error(f"Unknown command {command!r}.{nearest(command, COMMANDS)}")
    named = None if command is None else Command(command, COMMANDS[command], commands[command])
    overrides: dict[str, str] = {}
    if command is not None and takes(COMMANDS[command], "overrides"):
        given, overrides = split_overrides(given, parser)
    elif command is not None and "columns" in {argument.name for argument in arguments_of(COMMANDS[command])}:
        try:
            given = join_columns(given, parser)
        except ValueError as error:
            parser.error(str(error))
    if command is not None and takes(COMMANDS[command], "options"):
        code = _run(command, lambda: add_task_options(commands[command], command, given))
        if code:
            return code
    try:
        options = vars(parse(parser, given, named, overrides))
    except SystemExit as leave:
        config = _asked_to_explain(parser, given) if command == "train" and leave.code == 0 else None
        if config is None:
            raise
        return _run("train", lambda: print("\n" + explain_config(config, overrides)))
    name = options.pop("command")
    if name is None:
        parser.print_help()
        return 0
    return _run(name, lambda: COMMANDS[name](**grouped(COMMANDS[name], options), **overrides))


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
        print(f"saccade {name}: {_printable(_as_spelt(name, _in_lines(error)))}", file=sys.stderr)
        return 2
    return 0


def _printable(text: str) -> str:
    """The text without lone surrogates, which stand for arbitrary bytes in file names and cannot be printed."""
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


def build_parser(command: str | None = None) -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """The parser of all commands, and that of each.

    Args:
        command: the one that is going to run, so that options of others which take time to find can be left out.
    """
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
        text = split_docstring(function)[0]
        made[name] = commands.add_parser(
            name,
            help=text.splitlines()[0],
            description=wrapped(text),
            usage=usage_of(name, function),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        add_arguments(made[name], function)
        if takes(function, "format_options") and command in (None, name):
            add_format_options(made[name])
    return parser, made


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
