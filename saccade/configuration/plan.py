"""A whole training, checked before any work starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from saccade.configuration.errors import ConfigError
from saccade.configuration.parts import find_class, name_of, spell_out
from saccade.configuration.schema import Part
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
        for name in config:
            if name not in BASES:
                raise ConfigError(f"There is no section {name!r}.{nearest(str(name), BASES)}")
        parts = {name: self._part(name, config.get(name)) for name in ("task", "data", "trainer")}
        self.task: Task = parts["task"].make()
        self.data: Corpus = parts["data"].make()
        self.trainer: Trainer = parts["trainer"].make()
        self.model = self._part("model", config.get("model"), supplied=self.task.sizes())
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

    @staticmethod
    def _part(name: str, given: Any, *, supplied: Mapping[str, Any] | None = None) -> Part:
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
        kind = find_class(wanted, BASES[name], name)
        return Part(kind, arguments, name, supplied=supplied or ())
