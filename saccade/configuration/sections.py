"""The sections of a configuration."""

from __future__ import annotations

from typing import NamedTuple


class Section(NamedTuple):
    """What a section describes."""

    kind: str | None
    """The registry of its classes, by plural; None if there is one class, unless the user writes another."""

    usual: str | None
    """The class if none is named: a short name, or a dotted path."""


SECTIONS = {
    "task": Section("tasks", "generation"),
    "model": Section("models", None),
    "data": Section(None, "saccade.data.corpus.Corpus"),
    "trainer": Section(None, "saccade.training.trainer.Trainer"),
}


def say_which(section: str) -> str:
    """The message for a section that must name a class and does not."""
    return f"Name the {section}, for example `{section}: rnnsearch`; `saccade list {section}s` lists them."
