"""Pairs of nodes of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from saccade.data.cell import Cell, shown
from saccade.fields.base import Padded, fields
from saccade.fields.looking import Look, Seen
from saccade.fields.node import Node
from saccade.interpretation.explorer import Map, NodeAxis
from saccade.interpretation.recording import Trace


@fields.register("link")
class Link(Node):
    """Two nodes of a graph, between which there may be a link: `{pair: [source, target]}` in `data.columns`, or both
    names in one cell, with a space between them.

    While a pair is learned, the edges between its nodes are hidden, so that the answer cannot be read off the graph.
    Answers use the whole graph: it must not contain the links that are to be predicted. The arguments are those of
    `node`.
    """

    def read(self, raw: Any, cell: Cell) -> str:
        parts = raw.split() if isinstance(raw, str) else raw
        if not isinstance(parts, Sequence) or len(parts) != 2:
            fix = "Name its two columns, as --data.columns pair=source+target, or write both names with a space."
            raise cell.bad(f"the {cell.role} is not two nodes but {shown(raw)}", fix)
        ends = [super(Link, self).read(part, cell) for part in parts]
        spaced = next((end for end in ends if len(end.split()) != 1), None)
        if spaced is not None:
            raise cell.bad(f"the node {shown(spaced)} has a space in its name", "Replace it, by an underscore perhaps.")
        return " ".join(ends)

    def fit(self, values: Iterable[str]) -> None:
        places = np.array([self.encode(value) for value in values], dtype=np.int64).reshape(-1, 2)
        super().fit(())
        if self._trained is not None:
            self._trained[places] = True
        self._linked = self._edges_among(places), len(places)

    _linked = 0, 0

    def _edges_among(self, places: NDArray[np.int64]) -> int:
        """How many of these pairs are edges of the graph, in either direction."""
        edges, count = self.graph.edges, len(self.graph.features)
        known = np.isin(places @ [count, 1], np.concatenate([edges @ [count, 1], edges @ [1, count]]))
        return int(known.sum())

    def leaks(self, values: Iterable[str]) -> list[str]:
        places = np.array([self.encode(value) for value in values], dtype=np.int64).reshape(-1, 2)
        known = self._edges_among(places)
        fix = "from which the model can read the answer. Take them out of the graph."
        return [f"{known:,} of {len(places):,} validation pairs are edges of the graph, {fix}"] if known else []

    def encode(self, value: str) -> list[int]:  # type: ignore[override]
        return [super(Link, self).encode(end) for end in value.split()]

    def size(self, encoded: Any) -> int:
        return 1

    def pad(self, encoded: Sequence[Any], generator: torch.Generator | None = None) -> Padded:
        pairs = np.asarray(encoded, dtype=np.int64).reshape(-1, 2)
        if generator is None:
            around = self._around(pairs)
        else:
            _ = self.graph
            options: dict[str, Any] = {"sample": self.sample, "generator": generator, "among": self._trained}
            around = self._neighbours.around(np.unique(pairs), self.hops, without=pairs, **options)
        return {"values": torch.from_numpy(np.searchsorted(around.nodes, pairs)), **around.tensors}

    def axis(self, value: str, length: int | None = None) -> NodeAxis:
        return super().axis(value.split()[0], length)

    def maps(self, value: str, trace: Trace, answer: str, length: int | None = None) -> list[Map]:
        """Each layer's attention from both nodes."""
        around = self._around(np.array(self.encode(value)))
        ends = zip(self.encode(value), value.split(), strict=True)
        return [each for place, name in ends for each in self._maps(place, around, trace, f" of {name}")]

    def attended(self, values: Sequence[str], trace: Trace, mask: Tensor | None = None) -> list[Seen]:
        """The last layer's weights of the neighbours of both nodes, half of it for each."""
        ends = [value.split() for value in values]
        places = np.array([self.encode(value) for value in values])
        found = self._seen(places.reshape(-1), self._around(places), trace)
        if not found:
            return []
        pairs = zip(ends, found[::2], found[1::2], strict=True)
        return [
            Seen(
                [f"{end} ← {name}" for end, each in zip(both, (one, other), strict=True) for name in each.names],
                torch.cat([one.weights, other.weights]) / 2,
            )
            for both, one, other in pairs
        ]

    def look(self, trace: Trace, count: int, mask: Tensor | None = None) -> Look | None:
        return None

    def portable(self) -> dict[str, Any]:
        raise ValueError("pairs of nodes cannot be read outside Saccade")

    def fixed(self) -> dict[str, Tensor]:
        return {}

    def learned(self) -> str:
        known, pairs = self._linked
        hidden = f", {known:,} of {pairs:,} training pairs are edges, hidden while they are learned" if known else ""
        return super().learned() + hidden
