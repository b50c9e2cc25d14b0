"""A page for each command, from the parser that also prints its help."""

from __future__ import annotations

import argparse

from docstrings import arguments, markdown, parse, render
from pages import Page, classes
from saccade.cli import COMMANDS, build_parser

HIDDEN = ("-h", "--help")


def commands() -> list[Page]:
    """An index, followed by a page for each command."""
    _, parsers = build_parser()
    rows = [f"| [{name}]({name}.md) | {markdown(parse(function).summary)} |" for name, function in COMMANDS.items()]
    index = "\n".join(
        [
            "# Commands\n",
            "`saccade COMMAND --help` prints these pages. A command ends with exit code 0 when it is done, 2 for bad",
            "usage or bad input, and 130 when it is interrupted.\n",
            "| command | what it does |",
            "| --- | --- |",
            *rows,
        ]
    )
    return [Page("commands/index.md", "Commands", index), *(_page(name, parsers[name]) for name in COMMANDS)]


def _page(name: str, parser: argparse.ArgumentParser) -> Page:
    text = parse(COMMANDS[name])
    text.sections.pop("Args", None)
    usage = (parser.usage or "").replace("%(prog)s", f"saccade {name}")
    lines = [f"# saccade {name}\n", f"```\n{usage}\n```\n", render(text), "\n## Arguments\n"]
    lines += [_entry(action) for action in parser._actions if not set(action.option_strings) & set(HIDDEN)]
    if name in ("predict", "evaluate", "explain"):
        lines.append("\n## Options of each task\n")
        lines.append(f"`saccade {name} RUN --help` lists those of a run.\n")
        for task, member in classes("tasks").items():
            kinds = [member.options, *([member.explain_options] if name == "explain" else [])]
            listed = [parse(kind).sections["Args"] for kind in kinds if "Args" in parse(kind).sections]
            if listed:
                lines += [f"### {task}\n", *(_as_flags(each) for each in listed), ""]
    return Page(f"commands/{name}.md", name, "\n".join(lines))


def _entry(action: argparse.Action) -> str:
    name = ", ".join(action.option_strings) or action.dest
    return f"- `{name}`: {markdown(action.help or '')}"


def _as_flags(text: str) -> str:
    """The arguments of an options class as they are written on the command line."""
    listed = []
    for entry in arguments(text).splitlines():
        name, tick, meaning = entry.removeprefix("- `").partition("`")
        listed.append(f"- `--{name.replace('_', '-')}{tick}{meaning}")
    return "\n".join(listed)
