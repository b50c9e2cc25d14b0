"""A whole training, checked before any work starts."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import re
import typing
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias, TypeVar

import torch
from torch import nn
from torch.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)

from saccade.configuration.blueprints import Blueprint, known
from saccade.configuration.build import Checker, check_part
from saccade.configuration.classes import find_class, name_of, spell_out
from saccade.configuration.errors import ConfigError, refuse, shown
from saccade.configuration.hints import hint_of, words_of
from saccade.configuration.sections import OTHERS, SECTIONS, say_which, sizes_of_data
from saccade.configuration.spelling import may_be_role, no_metric, no_role, unknown_sections, wrong_options
from saccade.data.corpus import FOLD, GROUP, Corpus
from saccade.data.readers.columns import not_columns
from saccade.models import models
from saccade.registry import constructor_parameters, nearest
from saccade.tasks import Task, tasks
from saccade.training import Trainer

BASES: dict[str, type] = {"task": tasks.base, "model": models.base, "data": Corpus, "trainer": Trainer}

Made = TypeVar("Made")
PartOf: TypeAlias = str | Made | type[Made] | partial[Any] | Mapping[str, Any]
"""A part as `train` takes it: its short name, an instance, its class, a `partial`, or a dictionary of arguments."""

MOST_MODULES = 6_000
MOST_PARAMETERS = 2**33

ROLE = re.compile(r"(?!\.)[^/\\:\0]{1,80}")
"""The name of an input or target, which is also that of a folder of the run."""

READS = {"vocab": "tokens", "dim": "features", "classes": "classes"}
"""What an input is, by the last word of the size that describes it."""


class Plan:
    """The task, model, data and trainer that a configuration describes.

    Args:
        config: `{"task": ..., "model": ..., "data": ..., "trainer": ...}`. Each is the short name or dotted path of a
            class, or a dictionary with `class` and the arguments of its constructor. The task is `generation` unless
            another one is named; data and trainer need no class.
        trust: whether the configuration may name classes by dotted path, which runs the code of their modules.
    """

    def __init__(self, config: Mapping[str, Any], *, trust: bool = False) -> None:
        checked, made = self._checked(config, trust)
        self.task: Task = made["task"]
        refuse([_not_a_role(role) for role in self.task.fields if not ROLE.fullmatch(role)])
        data = _with_columns(checked["data"], _short_columns(config), self.task, trust)
        self.data: Corpus = made["data"] if data is checked["data"] else data.make()
        self.trainer: Trainer = made["trainer"]
        checked["data"] = data
        self.model = checked["model"]
        self.parts = {name: checked[name] for name in BASES}
        self._check_sizes()
        with torch.device("meta"), _bounded(self.model):
            self.model.rehearse()
        try:
            self.task.check(self.outline())
        except ValueError as error:
            raise ConfigError(str(error)) from None
        self.plain = {name: self._plain(name, part) for name, part in self.parts.items()}

    def check_training(self) -> None:
        """Raises if a new training would fail on a file later, or would ignore a column that the user names.

        A finished run is not checked: its files may be gone.
        """
        self.task.check_files()
        roles = [*self.task.roles(), FOLD, GROUP]
        about = f" {self.task.about_unread}" if self.task.about_unread else ""
        refuse(
            [
                f"data.columns: {known(type(self.task))} reads no {shown(role)}.{nearest(str(role), roles)}{about}"
                for role in self.data.columns or {}
                if role not in roles
            ]
        )

    def outline(self) -> nn.Module:
        """The model without weights, with placeholders for the sizes that follow from the data."""
        with torch.device("meta"), _bounded(self.model):
            model: nn.Module = self.model.make(**self.task.sizes())
            return model

    def build(self) -> nn.Module:
        """The model, once the task knows the data."""
        return self.task.build(self.model.kind, **self.model.arguments())

    def _plain(self, name: str, part: Blueprint) -> dict[str, Any]:
        supplied = self.task.sizes() if name == "model" else {}
        arguments = {key: value for key, value in part.plain.items() if key not in supplied}
        usual = part.kind is BASES[name]  # Corpus and Trainer need no name
        return arguments if usual else {"class": name_of(part.kind), **arguments}

    @staticmethod
    def _checked(config: Mapping[str, Any], trust: bool) -> tuple[dict[str, Blueprint], dict[str, Any]]:
        """All sections, and what they make, except the model; all problems are reported together."""
        checker = Checker(trust=trust)
        checker.problems += unknown_sections(config)
        found: dict[str, Blueprint] = {}
        made: dict[str, Any] = {}
        for name, base in BASES.items():
            noted = len(checker.problems)
            try:
                kind, given = _named(name, config.get(name), base, trust)
            except ConfigError as error:
                checker.problems.append(str(error))
            else:
                parameters = constructor_parameters(kind)
                if name == "data":
                    given = {key: value for key, value in given.items() if key not in _short_columns(config)}
                    if not isinstance(given.get("columns"), Mapping | None):
                        fields = made["task"].fields if isinstance(made.get("task"), Task) else ()
                        checker.problems.append(f"data: {not_columns(given.pop('columns'), list(fields))}")
                hidden = sizes_of_data({n: p.default is p.empty for n, p in parameters.items()})
                found[name] = checker.blueprint(kind, given, name, hidden=hidden if name == "model" else ())
                if name != "model":
                    checker.problems += found[name].missing()
                    if len(checker.problems) > noted:
                        checker.problems += found[name].out_of_range()
                    else:
                        made[name] = checker.attempt(found[name])
                        several = list(found[name].out_of_range()) if len(checker.problems) > noted else []
                        checker.problems[noted:] = several or checker.problems[noted:]
        task, trainer = made.get("task"), made.get("trainer")
        if isinstance(task, Task) and isinstance(trainer, Trainer) and trainer.metric not in ("loss", *task.metrics):
            checker.problems.append(_wrong_metric(trainer.metric, task))
        checker.problems += _wrong_options(found)
        refuse(checker.problems)
        return found, made

    def _check_sizes(self) -> None:
        """Checks that the model accepts all sizes that the task provides, and that the user sets none of them."""
        sizes = self.task.sizes()
        problems = [
            f"model.{name} follows from the task and the data, and cannot be set."
            for name in self.model.given
            if name in sizes
        ]
        takes = inspect.signature(self.model.kind).parameters
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in takes.values()):
            problems += [self._cannot_take(size, list(takes)) for size in sizes if size not in takes]
        refuse(problems or list(self.model.missing(sizes)))

    def _cannot_take(self, size: str, takes: list[str]) -> str:
        role, _, what = size.rpartition("_")
        if what.isdecimal() or size == OTHERS:
            inputs = len(self.task.inputs)
            use = ": use multi_source or multimodal" if size == OTHERS else ""
            return f"model {known(self.model.kind)} has no argument {size!r}: it reads one input, not {inputs}{use}."
        if not role:
            sizes = self.task.sizes()
            fit = [name for name, kind in models.load().items() if sizes.keys() <= constructor_parameters(kind).keys()]
            takes_all = f"models of this task take {' and '.join(sizes)}{': ' * bool(fit)}{', '.join(fit)}"
            return f"model {known(self.model.kind)} has no argument {size!r}: {takes_all}."
        own = next((READS[suffix] for suffix in READS if f"{role}_{suffix}" in takes), None)
        reads = f"it takes no {role}" if own is None else f"it reads {own}"
        gives = f"this task's {role} gives {READS.get(what, what)}"
        return f"model {known(self.model.kind)} has no argument {size!r}: {reads}, and {gives}."


def _wrong_metric(name: str, task: Task) -> str:
    """The message for a `trainer.metric` that is not computed."""
    known = [word for inner in typing.get_args(hint_of(type(task), "metrics")) for word in words_of(inner)]
    if name not in known or not task.metrics:
        return no_metric(name, ["loss", *task.metrics])
    return (
        f"trainer.metric: {name!r} is not among task.metrics. Add it, as --task.metrics "
        f"{','.join([*task.metrics, name])}, or choose by another, for example --trainer.metric "
        f"{next(iter(task.metrics))}."
    )


def _wrong_options(found: Mapping[str, Blueprint]) -> Iterator[str]:
    """The problem of each option of validation that predictions of the task do not have."""
    kind = found["task"].kind if "task" in found else None
    if kind is not None and issubclass(kind, Task) and "trainer" in found:
        known = [field.name for field in dataclasses.fields(kind.options)]
        yield from (each.text for each in wrong_options(found["trainer"].given.get("validate_options"), known))


def _not_a_role(role: str) -> str:
    return (
        f"task: {shown(role)} cannot be the name of an input, since a folder of the run also gets that name: leave out "
        "/, \\, : and a dot in front. data.columns may say which column it is."
    )


def task_class(config: Mapping[str, Any], *, trust: bool = False) -> type[Task]:
    """The class of a configuration's task; nothing is built."""
    return _named("task", config.get("task"), Task, trust)[0]


def _named(section: str, given: Any, base: type, trust: bool) -> tuple[type, dict[str, Any]]:
    """The class of a section, and its arguments."""
    given = spell_out(given, section)
    if isinstance(given, str):
        given = {"class": given}
    elif given is None:
        given = {}
    elif not isinstance(given, Mapping):
        raise ConfigError(f"{section} must be a class, or `class:` and its arguments, got {shown(given)}.")
    arguments = dict(given)
    wanted = arguments.pop("class", base if SECTIONS[section].kind is None else SECTIONS[section].usual)
    if wanted is None:
        raise ConfigError(say_which(section))
    return find_class(wanted, base, section, trust=trust), arguments


def _short_columns(config: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that the data section gives by role: `text: body`."""
    given = config.get("data")
    arguments = constructor_parameters(Corpus)
    known = given if isinstance(given, Mapping) and "class" not in given else {}
    return {name: v for name, v in known.items() if name not in arguments and may_be_role(name, arguments, config)}


def _with_columns(data: Blueprint, short: Mapping[str, Any], task: Task, trust: bool) -> Blueprint:
    """The data section with `text: body` under its columns, if `text` is a role of the task."""
    choices = [*constructor_parameters(Corpus), *task.fields]
    refuse([no_role(name, choices) for name in short if name not in task.fields])
    columns = data.given.get("columns") or {}
    if not short or not isinstance(columns, Mapping):
        return data
    return check_part(data.kind, {**data.given, "columns": {**columns, **short}}, "data", trust=trust)


@contextlib.contextmanager
def _bounded(part: Blueprint) -> Iterator[None]:
    """Rejects a model that becomes too large, while it is being built."""
    count = parameters = 0

    def registered(module: nn.Module, name: str, value: Any) -> None:
        nonlocal count, parameters
        count += 1
        parameters += value.numel() if isinstance(value, torch.Tensor) else 0
        if parameters > MOST_PARAMETERS:
            problem = f"more than {MOST_PARAMETERS:,} parameters; use smaller dimensions"
        elif count > MOST_MODULES:
            problem = f"more than {MOST_MODULES:,} modules and tensors; use fewer layers"
        else:
            return
        raise ConfigError(f"{part.where} ({known(part.kind)}) has {problem}.")

    hooks = [
        register_module_module_registration_hook(registered),
        register_module_parameter_registration_hook(registered),
        register_module_buffer_registration_hook(registered),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
