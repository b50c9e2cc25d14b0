"""Arguments that tasks share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from saccade.fields import Field, fields
from saccade.registry import closest

F = TypeVar("F", bound=Field)


def field_of(role: str, given: Field | str, kind: type[F]) -> F:
    """A field, or the one with this name; raises if it is of another kind.

    Args:
        role: the argument, for the message.
        given: what the user gave.
        kind: the class that the task needs.
    """
    made = fields.create(given) if isinstance(given, str) else given
    if not isinstance(made, kind):
        *others, last = [name for name, member in fields.items() if issubclass(member, kind)]
        names = f"{', '.join(others)} or {last}" if others else last
        raise ValueError(f"{role} must be the field {names}, got {type(made).__name__}.")
    return made


def chosen_metrics(names: Sequence[str], known: Mapping[str, bool]) -> dict[str, bool]:
    """The metrics that a user named, and whether higher is better; raises if the task has no such figure."""
    wrong = [name for name in names if name not in known]
    if wrong:
        close = ", ".join(repr(found) for name in wrong if (found := closest(name, known)))
        hint = f" Did you mean {close}?" if close else ""
        listed = f"metric{'s' * (len(wrong) > 1)} {', '.join(f'{name!r:.60}' for name in wrong)}"
        raise ValueError(f"Unknown {listed}.{hint} Choose from: {', '.join(sorted(known))}.")
    return {name: known[name] for name in names}
