"""The sections of a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Section(NamedTuple):
    """What a section describes."""

    kind: str | None
    """The registry of its classes, by plural; None if there is one class, unless the user writes another."""

    usual: str | None
    """The default class: a short name, or a dotted path."""


SECTIONS = {
    "task": Section("tasks", "generation"),
    "model": Section("models", None),
    "data": Section(None, "saccade.data.corpus.Corpus"),
    "trainer": Section(None, "saccade.training.trainer.Trainer"),
}

OTHERS = "other_sources"
"""The argument of a model that gets the sizes of all sources after the first."""


def say_which(section: str) -> str:
    """The message for a section that must name a class but does not."""
    return f"Name the {section}, for example `{section}: rnnsearch`; `saccade list {section}s` lists them."


def sizes_of_data(required: Mapping[str, bool]) -> set[str]:
    """The arguments of a model that follow from the data, so that no error message offers them.

    They are the ones that it requires, and the sizes of inputs and targets: `source_vocab`, and so `source_dim`, and
    `other_sources`.

    Args:
        required: the arguments of the model, and whether each is required.
    """
    roles = {name.rpartition("_")[0] for name in required if name.endswith(("_vocab", "_classes"))}
    sizes = {f"{role}_{size}" for role in roles for size in ("vocab", "dim", "classes")}
    return {name for name, needed in required.items() if needed or name in sizes or name == OTHERS}
