"""Weights as a pandas DataFrame."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from saccade.interpretation.recording.recorded import Recorded

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]

COLUMNS = ["call", "path", "run", "batch", "head", "query", "key", "weight"]


def to_frame(calls: Iterable[Recorded], least: float) -> pandas.DataFrame:
    """A row for each weight above `least`; queries and keys are positions."""
    try:
        import pandas
    except ModuleNotFoundError:
        raise ModuleNotFoundError("to_frame needs the library 'pandas': pip install pandas", name="pandas") from None
    parts = []
    for call in calls:
        weights = call.weights.float().cpu()
        batch, head, query, key = (weights > least).nonzero(as_tuple=True)
        first = call.kept.positions.query or 0
        values = (batch, head, query + first, key + call.kept.positions.key, weights[batch, head, query, key])
        part = pandas.DataFrame(dict(zip(COLUMNS[3:], (each.numpy() for each in values), strict=True)))
        parts.append(part.assign(call=call.name, path=call.path, run=call.run)[COLUMNS])
    return pandas.concat(parts, ignore_index=True) if parts else pandas.DataFrame(columns=COLUMNS)
