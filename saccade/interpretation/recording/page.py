"""The explorer page of a trace."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from torch import Tensor

from saccade.interpretation.explorer import Axis, Item, Map, Measure, TextAxis, TopWeights, write_page
from saccade.interpretation.recording.inputs import Generated, Inputs
from saccade.interpretation.recording.joining import Rows
from saccade.interpretation.recording.rows import DrawableCall, LeftOutError, check_whole, joined_of, weights_of
from saccade.interpretation.recording.subject import Subject
from saccade.interpretation.recording.tokens import text_tokenizer

Names = Axis | Sequence[str] | None

MOST_NAMED = 8
"""The maximum number of modules named in a note on the page."""


class DrawableTrace(Protocol):
    """Recorded calls: see `saccade.interpretation.recording.trace.Trace`."""

    @property
    def calls(self) -> Sequence[DrawableCall]: ...
    @property
    def paths(self) -> Sequence[str]: ...
    @property
    def runs(self) -> Sequence[DrawableTrace]: ...
    @property
    def missing(self) -> Sequence[tuple[str, str]]: ...
    def find(self, pattern: str) -> Sequence[DrawableCall]: ...
    def why_empty(self) -> str: ...


def write_trace(
    trace: DrawableTrace,
    path: str | os.PathLike[str],
    *,
    queries: Names,
    keys: Names,
    tokenizer: Any,
    inputs: Any,
    generated: Any,
    rate: int,
    row: int,
    rows: Rows | None,
    run: int | None,
    keep: str,
    title: str,
    measures: Sequence[Measure],
) -> None:
    """Writes the page of `Trace.explore`."""
    check_whole(row)
    if not trace.calls:
        raise ValueError(trace.why_empty())
    if not trace.find(keep):
        raise ValueError(f"keep={keep!r} matches none of {', '.join(trace.paths)}.")
    shown = _one_run(trace, run, several=inputs is None and generated is None)
    given = [name for name, value in (("queries", queries), ("keys", keys), ("rows", rows)) if value is not None]
    if inputs is None and generated is None:
        if tokenizer is not None:
            raise ValueError("tokenizer= needs something to name: give inputs=, generated= or both.")
        maps, notes = _named(shown, _axis("queries", queries), _axis("keys", keys), row, rows, keep)
    elif given:
        raise ValueError(f"{', '.join(given)}= cannot be given with inputs= or generated=, which say the same.")
    else:
        maps, notes = _of_subject(shown, tokenizer, inputs, generated, rate, row, keep)
    first = {call.path: call for call in reversed(shown.find(keep))}.values()
    kept = sorted({call.top[0].shape[-1] for call in first if call.top is not None})
    notes += [f"Only the {k} largest weights of each query were kept; the others count as zero." for k in kept]
    notes += [f"Not recorded: {place}: {reason}." for place, reason in trace.missing]
    write_page(path, [Item(title=title, maps=maps, measures=measures, notes=notes)], title=title)


def _one_run(trace: DrawableTrace, run: int | None, *, several: bool) -> DrawableTrace:
    """The calls of one run of the model, or of all runs if they need not belong together."""
    runs = trace.runs
    if run is not None and not 0 <= run < len(runs):
        raise ValueError(f"run={run}, but the model ran {len(runs)} times in the block, counted from 0.")
    if run is None and len(runs) > 1 and not several:
        raise ValueError(
            f"The model ran {len(runs)} times in the block: say which run inputs= and generated= belong to, "
            f"from run=0 to run={len(runs) - 1}."
        )
    return trace if run is None else runs[run]


def _of_subject(
    trace: DrawableTrace, tokenizer: Any, inputs: Any, generated: Any, rate: int, row: int, keep: str
) -> tuple[list[Map], list[str]]:
    """The maps of one row of a batch, and what is not shown."""
    by_path: dict[str, list[DrawableCall]] = {}
    for call in trace.calls:
        by_path.setdefault(call.path, []).append(call)
    subject = Subject(
        Inputs(inputs, rate),
        None if generated is None else Generated(generated),
        text_tokenizer(tokenizer),
        row,
        by_path,
    )
    maps, why = [], dict[str, list[str]]()
    for path in dict.fromkeys(call.path for call in trace.find(keep)):
        try:
            maps += subject.maps(path, by_path[path])
        except LeftOutError as reason:
            why.setdefault(str(reason), []).append(path)
    subject.check_inputs()
    left_out = [f"Not shown: {_listed(paths)}: {reason}." for reason, paths in why.items()]
    if not maps:
        raise ValueError(f"Nothing to show. {' '.join(left_out)}")
    return maps, [*subject.notes, *left_out]


def _named(
    trace: DrawableTrace, queries: Axis | None, keys: Axis | None, row: int, rows: Rows | None, keep: str
) -> tuple[list[Map], list[str]]:
    """The maps that fit the names, and what is not shown."""
    maps, sizes, left_out = [], [], []
    for name, call, weights in _matrices(trace, keep, row, rows):
        sizes.append(f"{name} ({weights.shape[1]}, {weights.shape[2]})")
        fitting = _fit(call, weights, queries, keys)
        if fitting is None:
            left_out.append(sizes[-1])
            continue
        layer = next((int(part) for part in call.path.split(".") if part.isdecimal()), None)
        maps.append(Map(name=name, weights=weights, queries=fitting[0], keys=fitting[1], layer=layer))
    given = [0 if axis is None else len(axis) for axis in (queries, keys)]
    if not maps:
        raise ValueError(
            f"Nothing to show: {given[0]} names of queries and {given[1]} of keys fit none of "
            f"{', '.join(sizes)} (queries, keys)."
        )
    if not left_out:
        return maps, []
    names = f"{given[0]} names of queries" + (f" and {given[1]} of keys" if keys is not None else "")
    return maps, [f"Not shown: {_listed(left_out)} (queries, keys): the {names} do not fit."]


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:MOST_NAMED])
    return shown if len(names) <= MOST_NAMED else f"{shown} and {len(names) - MOST_NAMED} more"


def _matrices(
    trace: DrawableTrace, keep: str, row: int, rows: Rows | None
) -> Iterator[tuple[str, DrawableCall, Tensor | TopWeights]]:
    """(heads, queries, keys) of each call; the steps of a decoder are joined."""
    shown = trace.find(keep)
    for path in dict.fromkeys(call.path for call in shown):
        calls = [call for call in shown if call.path == path]
        if len(calls) > 1 and (rows is not None or all(call.shape[2] == 1 for call in calls[1:])):
            yield path, calls[0], joined_of(calls[0], row, rows)
        else:
            for call in calls:
                yield call.name, call, weights_of(call, row)


def _fit(
    call: DrawableCall, weights: Tensor | TopWeights, queries: Axis | None, keys: Axis | None
) -> tuple[Axis, Axis] | None:
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


def _axis(side: str, names: Any) -> Axis | None:
    if names is None or isinstance(names, Axis):
        return names
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise TypeError(
            f"{side} must be a list of names or an axis of the explorer, got {type(names).__name__}: give what a "
            "tokeniser returned as inputs=, what generate returned as generated=, and tokenizer= to name their tokens."
        )
    return TextAxis(pieces=[str(name) for name in names])


def _numbers(count: int) -> TextAxis:
    return TextAxis(pieces=[str(number) for number in range(count)])
