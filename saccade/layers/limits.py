"""Limits on the input length of a module."""

from __future__ import annotations

from collections.abc import Iterable

from torch import nn

from saccade.layers.positions import PositionVectors
from saccade.scores import Score


def most_positions(module: nn.Module) -> int | None:
    """The maximum number of positions that all position vectors in a module support, or None."""
    return fewest(part.max_length for part in module.modules() if isinstance(part, PositionVectors))


def most_keys(module: nn.Module) -> int | None:
    """The maximum number of keys that all scores in a module support, or None."""
    return fewest(part.max_keys for part in module.modules() if isinstance(part, Score))


def fewest(limits: Iterable[int | None]) -> int | None:
    """The smallest of the limits; None means no limit."""
    return min((limit for limit in limits if limit is not None), default=None)
