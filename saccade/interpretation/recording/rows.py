"""The weights of one row of a batch as a map, without padding."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import NamedTuple, Protocol

from torch import Tensor

from saccade.interpretation.explorer import Axis, Map, TopWeights
from saccade.interpretation.recording.joining import Rows

NEGLIGIBLE = 1e-6


class DrawableCall(Protocol):
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
    @property
    def top(self) -> tuple[Tensor, Tensor] | None: ...
    @property
    def query_positions(self) -> range | None: ...
    def joined(self, rows: Rows | None = None) -> Tensor: ...
    def joined_top(self, rows: Rows | None = None) -> tuple[Tensor, Tensor, int] | None: ...


class LeftOutError(ValueError):
    """Why a module is not on the page."""


class Shown(NamedTuple):
    """The tokens of one side: their axis, and which of them are not padding."""

    axis: Axis
    kept: list[int]


def weights_of(call: DrawableCall, row: int) -> Tensor | TopWeights:
    """(heads, queries, keys) of a row of a call, or only the weights that were kept."""
    row = _check_row(call.name, call.shape[0], row)
    if call.top is None:
        return call.weights[row].float().cpu()
    values, places = (each[row].cpu() for each in call.top)
    return TopWeights(values=values.float(), places=places, keys=call.shape[3])


def joined_of(call: DrawableCall, row: int, rows: Rows | None = None) -> Tensor | TopWeights:
    """(heads, steps, keys) of a row of all calls of a module, or only the weights that were kept."""
    top = call.joined_top(rows)
    if top is None:
        joined = call.joined(rows)
        return joined[_check_row(call.path, len(joined), row)].float().cpu()
    values, places, keys = top
    row = _check_row(call.path, len(values), row)
    return TopWeights(values=values[row].float().cpu(), places=places[row].cpu(), keys=keys)


def map_of(name: str, layer: int | None, weights: Tensor | TopWeights, rows: Shown, columns: Shown) -> Map:
    """The map without padding if nothing attends to it; otherwise with padding."""
    if len(rows.kept) and rows.kept[-1] >= weights.shape[1]:
        raise LeftOutError(f"it has {weights.shape[1]} queries for {len(rows.kept)} tokens")
    dropped = sorted(set(range(weights.shape[2])) - set(columns.kept))
    if len(columns.kept) and columns.kept[-1] >= weights.shape[2]:
        raise LeftOutError(f"it has {weights.shape[2]} keys for {len(columns.kept)} tokens")
    if dropped and _weight_on(weights, rows.kept, dropped) > NEGLIGIBLE:
        raise LeftOutError(f"it attends to {len(dropped)} keys that are padding: was the model given attention_mask?")
    if isinstance(weights, TopWeights):
        chosen: Tensor | TopWeights = weights.chosen(rows.kept, columns.kept)
    else:
        chosen = weights[:, rows.kept][:, :, columns.kept]
    return Map(name=name, weights=chosen, queries=rows.axis, keys=columns.axis, layer=layer)


def _weight_on(weights: Tensor | TopWeights, queries: list[int], keys: list[int]) -> float:
    """The largest weight of some queries on some keys."""
    part = weights.chosen(queries, keys) if isinstance(weights, TopWeights) else weights[:, queries][:, :, keys]
    found = part.values if isinstance(part, TopWeights) else part
    return float(found.abs().max()) if found.numel() else 0.0


def check_whole(row: int) -> None:
    """Raises unless a row is given by its number."""
    try:
        index(row)
    except TypeError:
        raise TypeError(f"row must be a whole number, got {row!r}.") from None


def _check_row(name: str, rows: int, row: int) -> int:
    if not -rows <= row < rows:
        raise ValueError(f"row={row}, but the batch of {name!r} has {rows} rows.")
    return row
