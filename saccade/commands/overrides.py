"""Arguments of a configuration on the command line."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Sequence
from itertools import accumulate

from saccade.commands.columns import parse_column, parse_columns
from saccade.configuration.sections import SECTIONS

OVERRIDE = re.compile(rf"--([A-Za-z_][\w-]*\.[\w.-]+|{'|'.join(SECTIONS)})(?:=(.*))?", re.DOTALL)
"""`--model.hidden_dim 64`, `--model.hidden_dim=64`, or a whole section as `--model '{class: rnnsearch}'`."""

ROLE = re.compile(r"--(data\.[A-Za-z_][\w-]*)(?:=(.*))?", re.DOTALL)
"""`--data.text body`, for commands without a configuration."""

SAME = {"data.columns": "--columns", "data.header": "--header", "data.bad_rows": "--bad-rows"}
"""The options of training files under the names that commands without a configuration have for them."""


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
        if _is_open(value):
            following = list(remaining)
            remaining = iter(following)
            longer = accumulate(following, "{} {}".format, initial=value)
            whole = next((each for each in longer if not _is_open(each)), None)
            if whole is not None:  # which the shell has split at its spaces
                parser.error(f"put a value with spaces in quotes: --{match[1]} {shlex.quote(whole)}")
        overrides[match[1].replace("-", "_")] = value
    return rest, overrides


def _is_open(value: str) -> bool:
    """Whether a mapping or a list begins and does not end."""
    return value.startswith(("{", "[")) and any(value.count(a) > value.count(b) for a, b in ("{}", "[]"))


def join_columns(given: Sequence[str], parser: argparse.ArgumentParser) -> list[str]:
    """Options of files that are written as for training: `--data.text body`, `--data.header yes`."""
    rest, found = split_overrides(given, parser, ROLE)
    rest += [part for key, value in found.items() if key in SAME for part in (SAME[key], value)]
    columns = {key.removeprefix("data."): parse_column(value) for key, value in found.items() if key not in SAME}
    if not columns:
        return rest
    for place, argument in enumerate(rest):
        if argument == "--columns" and place + 1 < len(rest):
            columns = {**(parse_columns(rest[place + 1]) or {}), **columns}
        elif argument.startswith("--columns="):
            columns = {**(parse_columns(argument.partition("=")[2]) or {}), **columns}
    return [*rest, "--columns", json.dumps(columns)]
