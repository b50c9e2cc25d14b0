"""Labels with their probabilities, as explanations show them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from saccade.interpretation.explorer import Outcome

SHOWN = 5
"""How many an explanation shows."""


def outcomes_of(probabilities: Mapping[str, float], wanted: Collection[str]) -> list[Outcome]:
    """The most probable labels, and those that are right."""
    ranked = sorted(probabilities.items(), key=lambda item: -item[1])
    shown = [(name, p) for number, (name, p) in enumerate(ranked) if number < SHOWN or name in wanted]
    return [Outcome(label=name, probability=p, gold=name in wanted) for name, p in shown]
