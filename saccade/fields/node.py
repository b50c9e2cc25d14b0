"""Nodes of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from saccade.checks import check_count
from saccade.data.cell import Cell, shown, text_of
from saccade.fields.base import Field, Padded, fields
from saccade.fields.graph_files import Graph, load_graph, read_graph, save_graph
from saccade.interpretation.explorer import Map, NodeAxis
from saccade.interpretation.recording import Trace
from saccade.layers.graph import degree_blocks
from saccade.registry import nearest

DRAWN = 60
"""Nodes of a neighbourhood whose own attention is drawn too; of a larger one, that of the node alone."""


@fields.register("node")
class Node(Field):
    """A node of one graph, by its name (or its number from 0, where nodes have no names).

    The graph is read from files when training starts, and kept in the run folder.

    Args:
        graph: graph.npz with `edges` (count, 2) and features as `x` (nodes, dim) or in CSR form (`x_indptr`,
            `x_indices`, `x_data`, `x_shape`); or the file of the edges, a CSV or TSV with a header and two columns of
            node names.
        nodes: with a file of edges, the CSV or TSV of the nodes, with a header: a name, then one number per feature.
        hops: how far around a node the model sees: as many steps as it has layers.
        directed: whether a node reads only the nodes that an edge comes from; by default edges go both ways.
        self_loops: whether a node also reads itself.
        row_normalise: whether the features of a node are divided by their sum.
        bad_edges: "error" stops at an edge to a node that does not exist, "skip" leaves it out.
    """

    def __init__(
        self,
        *,
        graph: str,
        nodes: str | None = None,
        hops: int = 2,
        directed: bool = False,
        self_loops: bool = True,
        row_normalise: bool = False,
        bad_edges: Literal["error", "skip"] = "error",
    ) -> None:
        check_count("hops", hops)
        if bad_edges not in ("error", "skip"):
            raise ValueError(f"bad_edges must be 'error' or 'skip', got {bad_edges!r}.")
        self.files = graph, nodes
        self.hops = hops
        self.directed = directed
        self.self_loops = self_loops
        self.row_normalise = row_normalise
        self.bad_edges = bad_edges
        self._graph: Graph | None = None

    @property
    def graph(self) -> Graph:
        """The graph, read when it is first needed."""
        if self._graph is None:
            self._use(read_graph(*self.files, skip=self.bad_edges == "skip"))
        assert self._graph is not None
        return self._graph

    def _use(self, graph: Graph) -> None:
        self._graph = graph
        edges = graph.edges if self.directed else np.concatenate([graph.edges, graph.edges[:, ::-1]])
        if self.self_loops:
            loops = np.arange(len(graph.features))
            edges = np.concatenate([edges[edges[:, 0] != edges[:, 1]], np.stack([loops, loops], axis=1)])
        edges = np.unique(edges[:, ::-1], axis=0)  # by the node that reads, each edge once
        self._starts = np.searchsorted(edges[:, 0], np.arange(len(graph.features) + 1))
        self._neighbours = edges[:, 1]
        self._places = {name: place for place, name in enumerate(graph.names)} if graph.names is not None else None
        sums = np.abs(graph.features).sum(1, keepdims=True)
        scaled = graph.features / np.maximum(sums, 1e-12) if self.row_normalise else graph.features
        self._features = torch.from_numpy(scaled.astype(np.float32))

    def read(self, raw: Any, cell: Cell) -> str:
        name = text_of(int(raw) if isinstance(raw, float) and raw.is_integer() else raw, cell).strip()
        if self._place(name) is None:
            known = self.graph.names
            few = f"Its nodes are numbers from 0 to {len(self.graph.features) - 1}." if known is None else ""
            raise cell.bad(f"the graph has no node {shown(name)}", few or _similar(name, known or []))
        return name

    def _place(self, name: str) -> int | None:
        count = len(self.graph.features)
        if self._places is not None:
            return self._places.get(name)
        return int(name) if name.isdecimal() and len(name) < 12 and int(name) < count else None

    def fit(self, values: Iterable[str]) -> None:
        count = len(self.graph.features)  # read now, if no value was
        assert count

    def sizes(self) -> dict[str, int]:
        return {"dim": 5 if self._graph is None else self.graph.features.shape[1], "hops": self.hops}

    def save(self, folder: Path) -> None:
        save_graph(self.graph, folder)

    def load(self, folder: Path) -> None:
        self._use(load_graph(folder))

    def encode(self, value: str) -> int:
        place = self._place(value)
        assert place is not None, "read() accepts only nodes of the graph"
        return place

    def pad(self, encoded: Sequence[int], generator: torch.Generator | None = None) -> Padded:
        return self._around(list(encoded))[1]

    def _around(self, places: list[int]) -> tuple[NDArray[np.int64], Padded]:
        """The nodes within `hops` steps, and the tensors of the graph that they make; the outermost read nobody."""
        inside = np.unique(places)
        found = inside
        for _ in range(self.hops):
            inside, found = found, np.union1d(found, np.concatenate([self._of(n) for n in found.tolist()]))
        reading = {int(n): self._of(n) for n in inside.tolist()}
        widest = max((len(each) for each in reading.values()), default=0)
        neighbours = np.zeros((len(found), max(widest, 1)), dtype=np.int64)
        mask = np.zeros(neighbours.shape, dtype=bool)
        for row, node in enumerate(found.tolist()):
            own = reading.get(node)
            if own is not None and len(own):
                neighbours[row, : len(own)] = np.searchsorted(found, own)
                mask[row, : len(own)] = True
        values = torch.from_numpy(np.searchsorted(found, np.asarray(places)))
        tensors = {"neighbours": torch.from_numpy(neighbours), "mask": torch.from_numpy(mask)}
        return found, {"values": values, "features": self._features[torch.from_numpy(found)], **tensors}

    def _of(self, node: int) -> NDArray[np.int64]:
        return self._neighbours[self._starts[node] : self._starts[node + 1]]

    def axis(self, value: str, length: int | None = None) -> NodeAxis:
        near = self._of(self.encode(value)).tolist()
        centre = self.encode(value)
        nodes = near if centre in near else [centre, *near]
        return NodeAxis(names=[self._name(node) for node in nodes], centre=nodes.index(centre))

    def maps(self, value: str, trace: Trace, answer: str) -> list[Map]:
        centre = self.encode(value)
        found, tensors = self._around([centre])
        blocks = degree_blocks(tensors["neighbours"], tensors["mask"])
        names = [self._name(node) for node in found.tolist()]
        middle = int(np.searchsorted(found, centre))
        maps = []
        for layer, path in enumerate(trace.paths):
            calls = [call for call in trace.calls if call.path == path]
            if len(calls) != len(blocks):
                continue
            weights = torch.zeros(calls[0].heads, len(found), len(found))
            for call, block in zip(calls, blocks, strict=True):
                _spread(weights, call.weights.float().cpu()[:, :, 0], block.rows, block.neighbours, block.mask)
            kept = torch.arange(len(found)) if len(found) <= DRAWN else weights[:, middle].sum(0).nonzero().squeeze(1)
            kept = torch.unique(torch.cat([kept, torch.tensor([middle])]))
            axis = NodeAxis(names=[names[n] for n in kept.tolist()], centre=int((kept == middle).nonzero()))
            alone = NodeAxis(names=[names[middle]])
            whole = len(found) <= DRAWN
            shown_weights = weights[:, kept][:, :, kept] if whole else weights[:, middle : middle + 1, kept]
            maps.append(Map(name=path, weights=shown_weights, queries=axis if whole else alone, keys=axis, layer=layer))
        return maps

    def _name(self, node: int) -> str:
        return str(node) if self.graph.names is None else self.graph.names[node]

    def learned(self) -> str:
        graph = self.graph
        skipped = f", {graph.skipped:,} edges to unknown nodes left out" if graph.skipped else ""
        alone = int((np.diff(self._starts) <= self.self_loops).sum())
        isolated = f", {alone:,} isolated nodes" if alone else ""
        size = f"{len(graph.features):,} nodes with {graph.features.shape[1]:,} features, {len(graph.edges):,} edges"
        return f"{size}{isolated}{skipped}"


def _spread(weights: Tensor, of_block: Tensor, rows: Tensor, neighbours: Tensor, mask: Tensor) -> None:
    """Writes the weights (rows, heads, degree) of a block into those of the whole graph (heads, nodes, nodes)."""
    row, place = mask.nonzero(as_tuple=True)
    weights[:, rows[row], neighbours[row, place]] = of_block[row, :, place].T


def _similar(name: str, names: Sequence[str]) -> str:
    hint = nearest(name, list(names)[:5000]).partition(" Choose from")[0].strip() if len(names) <= 5000 else ""
    return hint or "Correct the name, or leave such rows out (bad_rows: skip)."
