"""The explorer page of a trace."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Protocol

from torch import Tensor

from saccade.interpretation.explorer import Axis, Item, Map, Measure, TextAxis, write_page
from saccade.interpretation.recording.joining import Rows

Names = Axis | Sequence[str] | None


class Call(Protocol):
    """One call of attention: see `saccade.interpretation.recording.trace.Recorded`."""

    @property
    def name(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def kind(self) -> str | None: ...
    @property
    def shape(self) -> Sequence[int]: ...
    @property
    def weights(self) -> Tensor: ...
    def joined(self, rows: Rows | None = None) -> Tensor: ...


class Calls(Protocol):
    """Call calls: see `saccade.interpretation.recording.trace.Trace`."""

    @property
    def calls(self) -> Sequence[Call]: ...
    @property
    def paths(self) -> Sequence[str]: ...
    def find(self, pattern: str) -> Sequence[Call]: ...
    def why_empty(self) -> str: ...


def write_trace(
    trace: Calls,
    path: str | os.PathLike[str],
    *,
    queries: Names,
    keys: Names,
    row: int,
    rows: Rows | None,
    keep: str,
    title: str,
    measures: Sequence[Measure],
) -> None:
    """Writes the page of `Trace.explore`."""
    if not trace.calls:
        raise ValueError(trace.why_empty())
    if not trace.find(keep):
        raise ValueError(f"keep={keep!r} matches none of {', '.join(trace.paths)}.")
    axes = _axis(queries), _axis(keys)
    maps, sizes = [], []
    for name, call, weights in _matrices(trace, keep, row, rows):
        sizes.append(f"{name} ({weights.shape[1]}, {weights.shape[2]})")
        fitting = _fit(call, weights, *axes)
        if fitting is not None:
            layer = next((int(part) for part in call.path.split(".") if part.isdecimal()), None)
            maps.append(Map(name=name, weights=weights, queries=fitting[0], keys=fitting[1], layer=layer))
    if not maps:
        given = [0 if axis is None else len(axis) for axis in axes]
        raise ValueError(
            f"Nothing to show: {given[0]} names of queries and {given[1]} of keys fit none of "
            f"{', '.join(sizes)} (queries, keys)."
        )
    write_page(path, [Item(title=title, maps=maps, measures=measures)], title=title)


def _matrices(trace: Calls, keep: str, row: int, rows: Rows | None) -> Iterator[tuple[str, Call, Tensor]]:
    """(heads, queries, keys) of each call; the steps of a decoder are joined."""
    shown = trace.find(keep)
    for path in dict.fromkeys(call.path for call in shown):
        calls = [call for call in shown if call.path == path]
        if len(calls) > 1 and (rows is not None or all(call.shape[2] == 1 for call in calls[1:])):
            yield path, calls[0], _row(path, calls[0].joined(rows), row)
        else:
            for call in calls:
                yield call.name, call, _row(call.name, call.weights, row)


def _row(name: str, weights: Tensor, row: int) -> Tensor:
    if not -weights.shape[0] <= row < weights.shape[0]:
        raise ValueError(f"row={row}, but the batch of {name!r} has {weights.shape[0]} rows.")
    return weights[row].float().cpu()


def _fit(call: Call, weights: Tensor, queries: Axis | None, keys: Axis | None) -> tuple[Axis, Axis] | None:
    """The axes with the lengths of the weights; if both fit, the path decides between source and target."""
    if queries is None and keys is None:
        return _numbers(weights.shape[1]), _numbers(weights.shape[2])
    given = [axis for axis in (queries, keys) if axis is not None]
    parts = call.path.lower()
    if call.kind != "cross" and "encoder" in parts and "decoder" not in parts:
        rows, columns = given[::-1], given[::-1]  # the source
    elif call.kind == "self" or (call.kind is None and "decoder" in parts):
        rows, columns = given, given  # the target
    else:
        rows, columns = given, given[::-1]
    row = next((axis for axis in rows if len(axis) == weights.shape[1]), None)
    column = next((axis for axis in columns if len(axis) == weights.shape[2]), None)
    return None if row is None or column is None else (row, column)


def _axis(names: Names) -> Axis | None:
    if names is None or not isinstance(names, Sequence):
        return names
    return TextAxis(pieces=[str(name) for name in names])


def _numbers(count: int) -> TextAxis:
    return TextAxis(pieces=[str(number) for number in range(count)])
