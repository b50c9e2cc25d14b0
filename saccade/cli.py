"""The command line: a table of functions whose docstrings are the help."""

from __future__ import annotations

import argparse
import inspect
import json as json_module
import os
import shutil
import sys
import textwrap
import typing
from collections.abc import Callable, Sequence
from types import UnionType
from typing import Any

import torch
from torch import nn

import saccade
from saccade.registry import Registry, constructor_parameters, describe, nearest

KINDS: dict[str, Registry[Any]] = {
    "scores": saccade.scores.scores,
    "selections": saccade.selections.selections,
    "aggregations": saccade.aggregations.aggregations,
}


def list_members(kind: str | None = None, *, json: bool = False) -> None:
    """List the scores, selections and aggregations.

    Each member is shown with its short name, its class with the arguments of its constructor, and what it does.

    Args:
        kind: scores, selections or aggregations; all of them if left out.
        json: print a JSON array of objects instead of a table.
    """
    if kind is not None and kind not in KINDS:
        raise ValueError(f"Unknown kind {kind!r}.{nearest(kind, KINDS)}")
    shown = [k for k in KINDS if kind in (None, k)]
    if json:
        print(json_module.dumps([_as_json(k, n, m) for k in shown for n, m in KINDS[k].items()], indent=2))
        return
    for k in shown:
        if kind is None:
            print(f"{k}\n")
        _print_table([(name, [describe(member), summary(member)]) for name, member in KINDS[k].items()])
        if k != shown[-1]:
            print()


def show_member(name: str) -> None:
    """Show one member: its signature, equation, shapes and reference.

    Args:
        name: a short name (additive) or a class name (AdditiveScore).
    """
    found = [
        (kind, short, member)
        for kind, registry in KINDS.items()
        for short, member in registry.items()
        if name in (short, member.__name__)
    ]
    if not found:
        raise ValueError(
            f"No member is called {name!r}.{nearest(name, {n for r in KINDS.values() for n in r.names()})}"
        )
    for kind, short, member in found:
        print(f"saccade.{kind}.{describe(member)}")
        print(f"short name: {short}\n")
        print(inspect.getdoc(member) or "")
        if member is not found[-1][2]:
            print()


def select_scores(scores: list[float]) -> None:
    """Show what each selection does to the same scores.

    One row for each selection that needs nothing but scores, with its default arguments, in evaluation mode: the
    weights that `reading.weights` would hold for one query whose keys have these scores.

    Args:
        scores: one number for each key, for example 2 1.6 0.5 -1.
    """
    if not scores:
        raise ValueError("Give at least one score, for example: saccade select 2 1.6 0.5 -1")
    rows = [("scores", torch.tensor(scores))] + [
        (name, weights_of(member, torch.tensor([scores]))[0]) for name, member in context_free_selections()
    ]
    width = max(len(name) for name, _ in rows)
    for name, row in rows:
        cells = (f"{x:8.2f}" if name == "scores" or x != 0 else f"{'.':>8}" for x in row.tolist())
        print(f"{name:{width}}{''.join(cells)}")


COMMANDS: dict[str, Callable[..., None]] = {
    "list": list_members,
    "show": show_member,
    "select": select_scores,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; exits with 0, or with 2 where the command line is wrong."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    parser = build_parser()
    command = next((a for a in given if not a.startswith("-")), None)
    if command is not None and command not in COMMANDS:
        parser.error(f"Unknown command {command!r}.{nearest(command, COMMANDS)}")
    options = vars(parser.parse_args(given))
    name = options.pop("command")
    if name is None:
        parser.print_help()
        return 0
    try:
        COMMANDS[name](**options)
        sys.stdout.flush()
    except (ValueError, TypeError) as error:
        print(f"saccade {name}: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # `saccade list | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def build_parser() -> argparse.ArgumentParser:
    """Positional parameters become positional arguments, keyword-only ones become options."""
    parser = argparse.ArgumentParser(
        prog="saccade",
        description="The attention toolkit for PyTorch: attention = score x selection x aggregation.",
        epilog="Try `saccade list scores`, `saccade show sparsemax`, `saccade select 2 1.6 0.5 -1`.",
    )
    parser.add_argument("--version", action="version", version=f"saccade {saccade.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", title="commands")
    for name, function in COMMANDS.items():
        text, helps = _split_docstring(function)
        sub = commands.add_parser(
            name,
            help=text.splitlines()[0],
            description=text,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        types = typing.get_type_hints(function)
        for parameter in inspect.signature(function).parameters.values():
            _add_argument(sub, parameter, types[parameter.name], helps[parameter.name])
    return parser


def _add_argument(parser: argparse.ArgumentParser, parameter: inspect.Parameter, kind: Any, text: str) -> None:
    if parameter.kind is parameter.KEYWORD_ONLY:
        flag = f"--{parameter.name.replace('_', '-')}"
        if kind is bool:
            parser.add_argument(flag, action="store_true", help=text)
        else:
            parser.add_argument(flag, type=_scalar(kind), default=parameter.default, help=text)
    elif typing.get_origin(kind) is list:
        parser.add_argument(parameter.name, nargs="*", type=typing.get_args(kind)[0], help=text)
    elif parameter.default is parameter.empty:
        parser.add_argument(parameter.name, type=kind, help=text)
    else:
        parser.add_argument(parameter.name, nargs="?", type=_scalar(kind), default=parameter.default, help=text)


def _scalar(kind: Any) -> Any:
    """`int` of `int | None`."""
    return typing.get_args(kind)[0] if isinstance(kind, UnionType) else kind


def _split_docstring(function: Callable[..., None]) -> tuple[str, dict[str, str]]:
    """The text before `Args:`, and the help of each argument."""
    text, _, listed = (inspect.getdoc(function) or "").partition("\n\nArgs:\n")
    entries = (line.strip().partition(": ") for line in listed.splitlines())
    return text, {name: help_text for name, _, help_text in entries}


def summary(member: type) -> str:
    """The first sentence of a docstring."""
    return " ".join((inspect.getdoc(member) or "").partition("\n\n")[0].split())


def context_free_selections() -> list[tuple[str, type]]:
    """The selections that are built without arguments and need to know nothing but scores."""
    found = []
    for name, member in KINDS["selections"].items():
        try:
            weights_of(member, torch.zeros(1, 2))
        except (TypeError, ValueError):
            continue
        found.append((name, member))
    return found


def weights_of(member: type[nn.Module], scores: torch.Tensor) -> torch.Tensor:
    """The weights of a selection with its default arguments, in evaluation mode."""
    with torch.no_grad():
        weights: torch.Tensor = member().eval()(scores).marginals
        return weights


def _as_json(kind: str, name: str, member: type) -> dict[str, Any]:
    parameters = [
        {"name": p.name, "required": True}
        if p.default is p.empty
        else {"name": p.name, "required": False, "default": p.default if _is_plain(p.default) else repr(p.default)}
        for p in constructor_parameters(member).values()
    ]
    return {
        "kind": kind,
        "name": name,
        "class": f"saccade.{kind}.{member.__name__}",
        "parameters": parameters,
        "summary": summary(member),
    }


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _print_table(rows: list[tuple[str, list[str]]]) -> None:
    """Name and lines side by side, or one above the other on a narrow terminal."""
    width = shutil.get_terminal_size().columns
    column = max((len(name) for name, _ in rows), default=0) + 2
    narrow = width < column + 50
    indent = " " * (4 if narrow else column)
    for name, lines in rows:
        if narrow:
            print(name)
        wrapped = [w for line in lines for w in textwrap.wrap(line, max(width - len(indent), 20))]
        for i, line in enumerate(wrapped):
            print((name.ljust(column) if i == 0 and not narrow else indent) + line)
