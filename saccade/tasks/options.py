"""Options of predictions and explanations: command-line flags, Python arguments and HTTP fields follow from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from saccade.configuration.build import check_part
from saccade.registry import nearest

NO_OPTIONS = " Predictions of this task take none."


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of a prediction, with defaults.

    A task's own options are a subclass: each field is typed and has a line under `Args:` in the docstring, which is
    its help on the command line. `check` rejects values that do not go together.
    """

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """The options with these values, checked; None stands for a default."""
        known = {field.name for field in fields(cls)}
        for name in given:
            if name not in known:
                raise ValueError(f"There is no option {name!r}.{nearest(name, known) if known else NO_OPTIONS}")
        values = {name: value for name, value in given.items() if value is not None}
        options: Self = check_part(cls, values, "options").make()
        options.check()
        return options

    @property
    def rows(self) -> int:
        """How many rows of a batch an input takes."""
        return 1

    @property
    def shares(self) -> bool:
        """Whether the answer to an input does not depend on the other inputs in its batch."""
        return True

    @property
    def several(self) -> bool:
        """Whether an input may have several answers, each on its own line."""
        return False

    @property
    def looks(self) -> bool:
        """Whether the answer has to show what the model attended to."""
        return False

    def check(self) -> None:
        """Raises `ValueError` for values out of range, or that do not go together."""

    def part(self, numbers: Sequence[int], of: int) -> Self:
        """The options of some of `of` inputs, where an option has a value for each."""
        return self

    def describe(self) -> str:
        """How predictions are made with these options, in a few words; empty if there is only one way."""
        return ""
