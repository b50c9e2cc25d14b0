"""A whole training, checked before any work starts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import nn

from saccade.configuration.errors import ConfigError
from saccade.configuration.parts import find_class, name_of, spell_out
from saccade.configuration.schema import Part, misspelt, refuse
from saccade.data.corpus import Corpus
from saccade.registry import nearest
from saccade.tasks import Task
from saccade.training import Trainer

BASES: dict[str, type] = {"task": Task, "model": nn.Module, "data": Corpus, "trainer": Trainer}


class Plan:
    """The task, model, data and trainer that a configuration describes.

    Args:
        config: `{"task": ..., "model": ..., "data": ..., "trainer": ...}`. Each is the short name or dotted path of a
            class, or a dictionary with `class` and the arguments of its constructor. The task is `translation` unless
            another one is named; data and trainer need no class.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        given = self._spelt(config)
        parts = {name: Part(*given[name], name) for name in ("task", "data", "trainer")}
        self.task: Task = parts["task"].make()
        self.data: Corpus = parts["data"].make()
        self.trainer: Trainer = parts["trainer"].make()
        self.model = Part(*given["model"], "model", supplied=self.task.sizes())
        self.parts = {name: parts.get(name, self.model) for name in BASES}
        if self.trainer.metric not in ("loss", *self.task.metrics):
            choices = nearest(self.trainer.metric, ["loss", *self.task.metrics])
            raise ConfigError(f"trainer.metric: the task has no figure {self.trainer.metric!r}.{choices}")
        try:
            self.task.check(self.outline())
        except ValueError as error:
            raise ConfigError(str(error)) from None
        self.plain = {name: self._plain(name, part) for name, part in self.parts.items()}

    def outline(self) -> nn.Module:
        """The model without weights, in sizes that stand for those which follow from the data."""
        with torch.device("meta"):
            model: nn.Module = self.model.make(**self.task.sizes())
            return model

    def build(self) -> nn.Module:
        """The model, once the task knows the data."""
        return self.task.build(self.model.kind, **self.model.arguments())

    @staticmethod
    def _plain(name: str, part: Part) -> dict[str, Any]:
        usual = part.kind is BASES[name]  # there is but one Corpus and one Trainer, unless a user writes another
        return part.plain if usual else {"class": name_of(part.kind), **part.plain}

    @classmethod
    def _spelt(cls, config: Mapping[str, Any]) -> dict[str, tuple[type, dict[str, Any]]]:
        """The class and the arguments of each part; all that is misspelt is told at once, before anything is made."""
        wrong = [f"There is no section {name!r}.{nearest(str(name), BASES)}" for name in config if name not in BASES]
        found: dict[str, tuple[type, dict[str, Any]]] = {}
        for name in BASES:
            try:
                found[name] = cls._named(name, config.get(name))
            except ConfigError as error:
                wrong.append(str(error))
            else:
                supplied = cls._supplied(found.get("task")) if name == "model" else ()
                wrong += misspelt(*found[name], name, supplied)
        refuse(wrong)
        return found

    @staticmethod
    def _supplied(task: tuple[type, dict[str, Any]] | None) -> Collection[str]:
        """The arguments of a model that follow from the data, if the task is right so far."""
        try:
            return {} if task is None else Part(*task, "task").make().sizes()  # type: ignore[no-any-return]
        except ConfigError:
            return {}

    @staticmethod
    def _named(name: str, given: Any) -> tuple[type, dict[str, Any]]:
        given = spell_out(given)
        if isinstance(given, str):
            given = {"class": given}
        elif given is None:
            given = {}
        elif not isinstance(given, Mapping):
            raise ConfigError(f"{name} must be a class, or `class:` and arguments, got {given!r}.")
        arguments = dict(given)
        default = {"task": "translation", "data": Corpus, "trainer": Trainer}.get(name)
        wanted = arguments.pop("class", default)
        if wanted is None:
            raise ConfigError(f"Say which {name}, for example `{name}: rnnsearch`; `saccade list {name}s` lists them.")
        return find_class(wanted, BASES[name], name), arguments
