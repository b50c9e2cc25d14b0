"""The arguments of export formats as options of a command."""

from __future__ import annotations

import argparse

from saccade.commands.arguments import split_text
from saccade.commands.task_options import add_option
from saccade.configuration.catalogue import Parameter, catalogue

SIMPLE = {"bool": bool, "int": int, "float": float, "str": str}
"""What options of formats may be, by annotation."""


def add_format_options(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the constructors of all formats; an option may belong to several of them."""
    group = parser.add_argument_group("options of formats")
    found: dict[str, list[tuple[str, Parameter, str]]] = {}
    for format, member in catalogue()["formats"].members.items():
        helps = split_text(member.doc)[1]
        for parameter in member.parameters.values():
            found.setdefault(parameter.name, []).append((format, parameter, helps.get(parameter.name, "")))
    for name, users in found.items():
        texts = {f"{format}: {text}": None for format, _, text in users}
        kind = users[0][1].annotation.partition(" |")[0]
        add_option(group, f"--{name.replace('_', '-')}", None, SIMPLE.get(kind, str), " ".join(texts))
