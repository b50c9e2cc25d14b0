"""Pairs of nodes of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from saccade.artifacts import ArtifactError, pack_tensors, read_tensors
from saccade.data.cell import Cell, shown
from saccade.data.errors import DataError
from saccade.fields.base import Padded, fields
from saccade.fields.graph_data import GeometricData, Graph
from saccade.fields.looking import Seen
from saccade.fields.node import Node
from saccade.fields.node_maps import seen_neighbours
from saccade.interpretation.explorer import Map, NodeAxis
from saccade.interpretation.recording import Trace

Pairs = NDArray[np.int64]
"""(count, 2): the numbers of two nodes."""

PAIRS = "pairs.safetensors"

TRIES = 20
"""How often pairs are drawn before a graph counts as complete; each time twice as many as are missing."""


@fields.register("link")
class Link(Node):
    """Two nodes of a graph that may be linked: `{pair: [source, target]}` in `data.columns`, or both names in one cell,
    separated by a space.

    While a pair is learned, the edges between its nodes are hidden, so that the answer cannot be read off the graph.
    Predictions use the whole graph: it must not contain the links to be predicted. The other arguments are those
    of `node`.

    Args:
        edges: which edges of the graph are read: "all", or only those that are training pairs ("trained"), so that a
            graph may contain the links to validate and test on.
    """

    def __init__(
        self,
        *,
        graph: str | GeometricData,
        nodes: str | None = None,
        edges: Literal["all", "trained"] = "all",
        hops: int = 2,
        directed: bool = False,
        self_loops: bool = True,
        sample: int | None = None,
        inductive: bool = False,
        row_normalise: bool = False,
        bad_edges: Literal["error", "skip"] = "error",
    ) -> None:
        super().__init__(
            graph=graph,
            nodes=nodes,
            hops=hops,
            directed=directed,
            self_loops=self_loops,
            sample=sample,
            inductive=inductive,
            row_normalise=row_normalise,
            bad_edges=bad_edges,
        )
        if edges not in ("all", "trained"):
            raise ValueError(f"edges must be 'all' or 'trained', got {edges!r}.")
        self.edges = edges
        self._pairs: Pairs = np.empty((0, 2), dtype=np.int64)
        self._taken: NDArray[np.int64] | None = None
        self._linked = self._unread = 0

    def _use(self, graph: Graph) -> None:
        super()._use(graph)
        self._taken = None

    def read(self, raw: Any, cell: Cell) -> str:
        parts = raw.split() if isinstance(raw, str) else raw
        if not isinstance(parts, Sequence) or len(parts) != 2:
            fix = "Name its two columns, as --data.columns pair=source+target, or write both names with a space."
            raise cell.bad(f"the {cell.role} is not two nodes but {shown(raw)}", fix)
        ends = [super(Link, self).read(part, cell) for part in parts]
        spaced = next((end for end in ends if len(end.split()) != 1), None)
        if spaced is not None:
            raise cell.bad(
                f"the node {shown(spaced)} has a space in its name", "Replace it, for example with an underscore."
            )
        return " ".join(ends)

    def fit(self, values: Iterable[str]) -> None:
        self._pairs = places = self._encoded(values)
        self._taken = None
        super().fit(())
        if self._trained is not None:
            self._trained[places] = True
        if self.edges == "trained":
            graph = self.graph
            read = np.isin(self._codes(graph.edges), self._codes(places, both=True))
            features = None if graph.edge_features is None else graph.edge_features[read]
            self._unread = int((~read).sum())
            self._use(graph._replace(edges=graph.edges[read], edge_features=features))
        self._linked = self._edges_among(places)

    def save(self, folder: Path) -> None:
        super().save(folder)
        (folder / PAIRS).write_bytes(pack_tensors({"pairs": torch.from_numpy(self._pairs)}))

    def load(self, folder: Path) -> None:
        super().load(folder)
        self._pairs = np.empty((0, 2), dtype=np.int64)
        if (folder / PAIRS).exists():  # which earlier versions did not write
            found = read_tensors(folder / PAIRS).get("pairs")
            if found is None or found.dtype != torch.int64 or found.dim() != 2 or found.shape[1] != 2:
                raise ArtifactError(f"{folder / PAIRS} is damaged: it must have two nodes for each training pair.")
            if found.numel() and not 0 <= int(found.min()) <= int(found.max()) < len(self.graph.features):
                raise ArtifactError(f"{folder / PAIRS} is damaged: it names nodes that the graph does not have.")
            self._pairs = found.numpy()
        self._linked = self._edges_among(self._pairs)

    def _encoded(self, values: Iterable[str]) -> Pairs:
        return np.array([self.encode(value) for value in values], dtype=np.int64).reshape(-1, 2)

    def _codes(self, pairs: Pairs, *, both: bool = False) -> NDArray[np.int64]:
        """A number for each pair; those of both directions one after the other."""
        count = len(self.graph.features)
        codes = pairs @ np.array([count, 1])
        return np.concatenate([codes, pairs @ np.array([1, count])]) if both else codes

    def _edges_among(self, places: Pairs) -> int:
        """How many of these pairs are edges of the graph, in either direction."""
        return int(np.isin(self._codes(places), self._codes(self.graph.edges, both=True)).sum())

    def unlinked(self, count: int, generator: torch.Generator, known: Sequence[list[int]] = ()) -> Pairs:
        """Draws this many pairs of different nodes, uniformly among those that are not edges, trained on or `known`."""
        both = not self.directed
        if self._taken is None:
            self._taken = np.unique(self._codes(np.concatenate([self.graph.edges, self._pairs]), both=both))
        others = self._codes(np.array(known, dtype=np.int64).reshape(-1, 2), both=both)
        found: list[Pairs] = []
        left = count
        for _ in range(TRIES):
            drawn = torch.randint(len(self.graph.features), (2 * left + 16, 2), generator=generator).numpy()
            codes = self._codes(drawn)
            place = np.searchsorted(self._taken, codes).clip(max=len(self._taken) - 1)
            free = ~np.isin(codes, others) & (drawn[:, 0] != drawn[:, 1])
            free &= self._taken[place] != codes if len(self._taken) else True
            found.append(drawn[free][:left])
            left -= len(found[-1])
            if not left:
                return np.concatenate(found)
        raise DataError(
            "Nearly all pairs of nodes are linked, so no unlinked pairs can be drawn. Name such pairs in the "
            "data, with a label, and set the class of the task to classification."
        )

    def named(self, pair: Sequence[int]) -> str:
        """The value of two nodes, given their numbers."""
        return " ".join(map(self.graph.name, pair))

    def leaks(self, values: Iterable[str]) -> list[str]:
        places = self._encoded(values)
        known = self._edges_among(places)
        if not known:
            return []
        if self.edges == "trained":
            problem = "are also training pairs, in one direction or the other. Name each link once."
        else:
            problem = (
                "are edges of the graph, from which the model can read the answer. Take them out of the graph, or read "
                "only the edges that are trained on (edges: trained)."
            )
        return [f"{known:,} of {len(places):,} validation pairs {problem}"]

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
        """The last layer's weights of the neighbours of both nodes, half for each node."""
        ends = [value.split() for value in values]
        places = np.array([self.encode(value) for value in values])
        found = seen_neighbours(self.graph, places.reshape(-1), self._around(places), trace)
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

    def portable(self) -> dict[str, Any]:
        return {**super().portable(), "kind": "link"}

    def stand_ins(self, count: int, length: int) -> Padded:
        return {"values": torch.arange(2 * count).view(count, 2) % len(self.graph.features)}

    def learned(self) -> str:
        found = [super().learned()]
        if self._unread:
            found.append(f"{self._unread:,} other edges are not read, since they are not training pairs")
        if self._linked:
            pairs = f"{self._linked:,} of {len(self._pairs):,} training pairs"
            found.append(f"{pairs} are edges, hidden while they are learned")
        return ", ".join(found)
