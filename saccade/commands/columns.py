"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from saccade.configuration.yaml_files import parse_yaml


def parse_columns(text: str | None, roles: Iterable[str] = ()) -> dict[str, Any] | None:
    """`source=en,target=2`, or the same as YAML: `{source: en, target: 2}`. `source=lemma+tags` joins two columns.

    Args:
        text: the value of the option.
        roles: those of the task, for an error message.
    """
    if text is None:
        return None
    if text.lstrip().startswith("{"):
        found = parse_yaml(text, f"--columns {text!r}")
        if isinstance(found, dict):
            return found
    columns: dict[str, Any] = {}
    for entry in text.split(","):
        role, equals, column = (part.strip() for part in entry.partition("="))
        if not equals or not role or not column:
            from saccade.data.readers.columns import not_columns

            raise ValueError(not_columns(text, list(roles)))
        columns[role] = parse_column(column)
    return columns


def parse_column(text: str) -> str | int | list[str | int]:
    """A column's name or number; `lemma+tags` is two columns."""
    names = [_name_or_number(name.strip()) for name in text.split("+")]
    return names if len(names) > 1 else names[0]


def _name_or_number(name: str) -> str | int:
    return int(name) if name.isdecimal() and len(name) < 10 else name


def parse_yes_no(text: str | None, option: str) -> bool | None:
    """`yes` and `no`, or `true` and `false`."""
    answers = {"yes": True, "true": True, "no": False, "false": False}
    if text is not None and text.lower() not in answers:
        raise ValueError(f"{option} must be yes or no, got {text!r}.")
    return None if text is None else answers[text.lower()]
