"""Saccade: every attention mechanism as a score, a selection and an aggregation."""

TYPE_CHECKING = False  # as type checkers know it; to import typing takes time, in which Ctrl-C is not yet handled

if TYPE_CHECKING:
    from typing import Any

    from saccade import aggregations, losses, masks, scores, selections
    from saccade.attention import Attention
    from saccade.interpretation.recording import Trace, record
    from saccade.memory import Memory
    from saccade.multihead import MultiHead
    from saccade.reading import Reading, State
    from saccade.runs import Run, cross_validate, load, train

__version__ = "0.1.0"

__all__ = [
    "Attention",
    "Memory",
    "MultiHead",
    "Reading",
    "Run",
    "State",
    "Trace",
    "aggregations",
    "cross_validate",
    "load",
    "losses",
    "masks",
    "record",
    "scores",
    "selections",
    "train",
]

_HOMES = {
    "Attention": "saccade.attention",
    "Memory": "saccade.memory",
    "MultiHead": "saccade.multihead",
    "Reading": "saccade.reading",
    "Run": "saccade.runs",
    "State": "saccade.reading",
    "Trace": "saccade.interpretation.recording",
    "cross_validate": "saccade.runs",
    "load": "saccade.runs",
    "record": "saccade.interpretation.recording",
    "train": "saccade.runs",
}
"""Where the public names come from; all others are modules."""


def __getattr__(name: str) -> "Any":
    """Imports a public name when it is first used, so that simple commands run without torch."""
    if name not in __all__:
        raise AttributeError(f"module 'saccade' has no attribute {name!r}")
    import importlib

    found = getattr(importlib.import_module(_HOMES[name]), name) if name in _HOMES else _module(name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _module(name: str) -> "Any":
    import importlib

    return importlib.import_module(f"saccade.{name}")
