"""The commands that show the members of Saccade: list, show, select."""

from __future__ import annotations

import json as json_module
import os
import shutil
import textwrap
from typing import TYPE_CHECKING, Any

from saccade.configuration.catalogue import Described, Parameter, catalogue
from saccade.configuration.files import shipped
from saccade.registry import closest, nearest

if TYPE_CHECKING:
    import torch
    from torch import nn


def list_members(kind: str | None = None, *, json: bool = False) -> None:
    """List scores, selections, models, configs and everything else that has a short name.

        saccade list selections
        saccade list configs

    Each member is shown with its short name and aliases, its class with the arguments of its constructor, and what it
    does; each config with what it trains. `saccade copy` copies a config for you to edit. Without a kind, everything
    but the configs is listed.

    Args:
        kind: scores, selections, aggregations, history, encoders, backbones, models, fields, readers, tasks,
            tokenisers, vectors, optimisers, schedules, formats or configs.
        json: print a JSON array of objects instead of a table.
    """
    if kind == "configs":
        _list_configs(json)
        return
    kinds = catalogue()
    if kind is not None and kind not in kinds:
        raise ValueError(f"Unknown kind {kind!r}.{nearest(kind, [*kinds, 'configs'])}")
    shown = [k for k in kinds if kind in (None, k)]
    if json:
        print(json_module.dumps([_as_json(k, n, m) for k in shown for n, m in kinds[k].members.items()], indent=2))
        return
    for k in shown:
        if kind is None:
            print(f"{k}\n")
        _print_table([(name, _lines(k, name, member)) for name, member in kinds[k].members.items()])
        if k != shown[-1]:
            print()


def _lines(kind: str, name: str, member: Described) -> list[str]:
    aliases = _aliases(kind, name)
    return [member.signature, member.summary, *([f"Also called {', '.join(aliases)}."] if aliases else [])]


def _aliases(kind: str, name: str) -> list[str]:
    return sorted(alias for alias, member in catalogue()[kind].aliases.items() if member == name)


def _list_configs(json: bool) -> None:
    """The first comment of a configuration says what it trains."""
    lines = {name: path.read_text(encoding="utf-8").partition("\n")[0].strip("# ") for name, path in shipped().items()}
    if json:
        print(json_module.dumps([{"name": name, "summary": line} for name, line in lines.items()], indent=2))
    else:
        _print_table([(name, [line]) for name, line in lines.items()])


def show_member(name: str) -> None:
    """Show one member: its signature, equation, shapes and reference.

        saccade show additive

    Args:
        name: a short name (additive), an alias (general) or a class name (AdditiveScore).
    """
    found = [
        (kind, short, member)
        for kind in catalogue().values()
        for short, member in kind.members.items()
        if name in (short, member.name) or kind.aliases.get(name) == short
    ]
    if not found:
        known = {known for kind in catalogue().values() for known in (*kind.members, *kind.aliases)}
        close = closest(name, known)
        hint = "" if close is None else f" Did you mean {close!r}?"
        if os.path.isfile(os.path.join(name, "config.yaml")):
            raise ValueError(f"{name} is a run: {os.path.join(name, 'README.md')} describes it.")
        if name in shipped():
            raise ValueError(
                f"{name} is a configuration: saccade copy {name} my.yaml copies it to read and edit, and saccade train "
                f"{name} --help explains its arguments."
            )
        raise ValueError(f"No member is called {name!r}.{hint} `saccade list` lists all of them.")
    for number, (kind, short, member) in enumerate(found):
        if number:
            print()
        aliases = _aliases(kind.plural, short)
        print(f"{kind.home}.{member.signature}")
        print(f"short name: {short}{f' (also {chr(44).join(aliases)})' if aliases else ''}\n")
        print(member.doc)


def select_scores(scores: list[float]) -> None:
    """Show what each selection does to the same scores.

        saccade select 2 1.6 0.5 -1

    One row for each selection that needs nothing but scores, with its default arguments, in evaluation mode: the
    weights that `reading.weights` would hold for one query whose keys have these scores.

    Args:
        scores: one number for each key, for example 2 1.6 0.5 -1.
    """
    import torch

    if not scores:
        raise ValueError("Give at least one score, for example: saccade select 2 1.6 0.5 -1")
    rows = [("scores", torch.tensor(scores))] + [
        (name, weights_of(member, torch.tensor([scores]))[0]) for name, member in context_free_selections()
    ]
    width = max(len(name) for name, _ in rows)
    for name, row in rows:
        cells = (f"{x:8.2f}" if name == "scores" or x != 0 else f"{'.':>8}" for x in row.tolist())
        print(f"{name:{width}}{''.join(cells)}")


def context_free_selections() -> list[tuple[str, type]]:
    """The selections that are built without arguments and need nothing but scores."""
    import torch

    from saccade.selections import selections

    found = []
    for name, member in selections.items():
        try:
            weights_of(member, torch.zeros(1, 2))
        except (TypeError, ValueError):
            continue
        found.append((name, member))
    return found


def weights_of(member: type[nn.Module], scores: torch.Tensor) -> torch.Tensor:
    """The weights of a selection with its default arguments, in evaluation mode."""
    import torch

    with torch.no_grad():
        weights: torch.Tensor = member().eval()(scores).marginals
        return weights


def _as_json(kind: str, name: str, member: Described) -> dict[str, Any]:
    return {
        "kind": kind,
        "name": name,
        "aliases": _aliases(kind, name),
        "class": f"{catalogue()[kind].home}.{member.name}",
        "parameters": [_parameter_as_json(parameter) for parameter in member.parameters.values()],
        "summary": member.summary,
    }


def _parameter_as_json(parameter: Parameter) -> dict[str, Any]:
    if parameter.required:
        return {"name": parameter.name, "required": True}
    default = parameter.default if _is_plain(parameter.default) else repr(parameter.default)
    return {"name": parameter.name, "required": False, "default": default}


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
