"""Saccade: every attention mechanism as a score, a selection and an aggregation."""

from typing import TYPE_CHECKING, Any

from saccade import aggregations, losses, masks, scores, selections
from saccade.attention import Attention
from saccade.memory import Memory
from saccade.multihead import MultiHead
from saccade.reading import Reading, State

if TYPE_CHECKING:
    from saccade.interpretation.recording import record
    from saccade.run import Run, load
    from saccade.run_training import train

__version__ = "0.1.0"

__all__ = [
    "Attention",
    "Memory",
    "MultiHead",
    "Reading",
    "Run",
    "State",
    "aggregations",
    "load",
    "losses",
    "masks",
    "record",
    "scores",
    "selections",
    "train",
]


def __getattr__(name: str) -> Any:
    """What trains and loads models is imported when it is first used: attention alone needs none of it."""
    if name in ("Run", "load"):
        from saccade import run

        return getattr(run, name)
    if name == "train":
        from saccade.run_training import train

        return train
    if name == "record":
        from saccade.interpretation.recording import record

        return record
    raise AttributeError(f"module 'saccade' has no attribute {name!r}")
