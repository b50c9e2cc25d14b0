"""The commands that show what there is: list, show, select."""

from __future__ import annotations

import inspect
import json as json_module
import shutil
import textwrap
from typing import Any

import torch
from torch import nn

import saccade
from saccade.configuration.files import shipped
from saccade.data.tokenisers import tokenisers
from saccade.models import models
from saccade.registry import Registry, constructor_parameters, describe, nearest
from saccade.tasks import tasks
from saccade.training import optimisers, schedules

KINDS: dict[str, Registry[Any]] = {
    "scores": saccade.scores.scores,
    "selections": saccade.selections.selections,
    "aggregations": saccade.aggregations.aggregations,
    "models": models,
    "tasks": tasks,
    "tokenisers": tokenisers,
    "optimisers": optimisers,
    "schedules": schedules,
}

HOMES = {"tokenisers": "saccade.data.tokenisers", "optimisers": "saccade.training", "schedules": "saccade.training"}
"""Where the classes of a kind are imported from, if not from `saccade.kind`."""


def list_members(kind: str | None = None, *, json: bool = False) -> None:
    """List what there is to choose from: scores, selections, models, configs and so on.

        saccade list selections
        saccade list configs

    Each member is shown with its short name, its class with the arguments of its constructor, and what it does; each
    config with what it trains. `saccade copy` makes a copy of a config to edit. Without a kind, all but the configs.

    Args:
        kind: scores, selections, aggregations, models, tasks, tokenisers, optimisers, schedules or configs.
        json: print a JSON array of objects instead of a table.
    """
    if kind == "configs":
        _list_configs(json)
        return
    if kind is not None and kind not in KINDS:
        raise ValueError(f"Unknown kind {kind!r}.{nearest(kind, [*KINDS, 'configs'])}")
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
        print(f"{HOMES.get(kind, f'saccade.{kind}')}.{describe(member)}")
        print(f"short name: {short}\n")
        print(inspect.getdoc(member) or "")
        if member is not found[-1][2]:
            print()


def select_scores(scores: list[float]) -> None:
    """Show what each selection does to the same scores.

        saccade select 2 1.6 0.5 -1

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
        "class": f"{HOMES.get(kind, f'saccade.{kind}')}.{member.__name__}",
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
