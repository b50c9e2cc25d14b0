"""What a model attended to in a value: which attention decides, and its maps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import Tensor
from torch.nn import functional as F

from saccade.interpretation.explorer import Axis, Map, TextAxis
from saccade.interpretation.recording import Recorded, Trace


class Seen(NamedTuple):
    """What a model attended to in one value."""

    names: list[str]
    """A name for each position."""

    weights: Tensor
    """The weight of each position."""

    picked: list[int] | None = None
    """The positions that were picked, if the model read only those."""


@dataclass(frozen=True)
class Look:
    """Which attention decides the answers of a batch, and which of its queries."""

    path: str
    query: int | None = None
    """The index of the deciding query; None for all of them together."""

    apart: bool = False
    """Whether each query decides about something separate, such as a word."""

    def weights(self, trace: Trace, count: int, values: Tensor | None = None) -> Tensor:
        """(count, keys), or (count, queries, keys) if each query decides separately; averaged over heads."""
        found = trace[self.path].weights.float().mean(1)
        if self.apart:
            return found
        return found.mean(1) if self.query is None else found[:, self.query]


class Looking(NamedTuple):
    """Which attention decides about the answers of a batch."""

    look: Look
    keys: str
    """The input that is attended to."""
    queries: str | None = None
    """The input whose positions attend to it; None if there is one row of weights for each answer."""


def last_self_attention(trace: Trace, role: str, count: int) -> Looking | None:
    """The last attention of the positions of `count` values to themselves."""
    paths = [call.path for call in trace.calls if call.shape[0] == count and call.shape[2] == call.shape[3]]
    return Looking(Look(paths[-1], apart=True), role, role) if paths else None


def last_pooling(trace: Trace, count: int, mask: Tensor | None) -> Look | None:
    """The last attention that pools each of `count` values, whose positions are those in the mask."""
    steps = Counter(call.path for call in trace.calls)
    once = [call for call in trace.calls if steps[call.path] == 1]
    pooled = [call for call in once if call.shape[0] == count and _pools(call.path, call.shape[2])]
    pooled = [call for call in pooled if mask is None or call.shape[3] == mask.shape[1]]
    return Look(pooled[-1].path) if pooled else None


def picked_by(call: Recorded) -> list[list[int] | None]:
    """The positions that each example's only query picked; None for attention that reads all positions by weight."""
    picked = call.picked
    if picked is None or picked.shape[1:3] != (1, 1):
        return [None] * call.shape[0]
    return [row.nonzero().flatten().tolist() for row in picked[:, 0, 0].cpu()]


def maps_over(keys: Axis, trace: Trace, answer: str) -> list[Map]:
    """Each attention of a batch of one over these keys, from the keys themselves or from learned queries."""
    return maps_between({len(keys): keys}, trace, answer)


def maps_between(
    axes: Mapping[int, Axis], trace: Trace, answer: str, names: Mapping[int, str] | None = None
) -> list[Map]:
    """Each attention of a batch of one over an axis, from any of the axes or from learned queries.

    A pooling is one row, named by the answer; several queries are shown as heads. An attention whose positions read
    only those before them has no weights for the last position: these are zeros.

    Args:
        axes: by the number of positions, padding at the end included, that the model sees of them.
        trace: what `record` saw.
        answer: the name of the only query.
        names: what the axes are, by the same number.
    """
    sides = {**axes, 1: TextAxis(pieces=[answer])}
    maps = []
    for path in trace.paths:
        weights = trace.joined(path)[0].float().cpu()
        if _pools(path, weights.shape[1]):
            weights = weights.flatten(0, 1).unsqueeze(1)
        elif weights.shape[1] in axes and weights.shape[2] == weights.shape[1] - 1:
            weights = F.pad(weights, (0, 1))
        queries, keys = sides.get(weights.shape[1]), axes.get(weights.shape[2])
        if queries is not None and keys is not None:
            layer = next((int(part) for part in path.split(".") if part.isdecimal()), None)
            real = weights[:, : len(queries), : len(keys)]
            rows, columns = ((names or {}).get(positions) for positions in weights.shape[1:])
            across = (rows, columns) if rows and columns and rows != columns else None
            sides_and_picks: dict[str, Any] = {"sides": across, "picked": picked_by(trace[path])[0]}
            maps.append(Map(name=path, weights=real, queries=queries, keys=keys, layer=layer, **sides_and_picks))
    return maps


def _pools(path: str, queries: int) -> bool:
    """Whether an attention reads with queries that are not positions of the input."""
    return queries == 1 or "pooling" in path.split(".")
