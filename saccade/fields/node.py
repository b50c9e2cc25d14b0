"""Nodes of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from saccade.artifacts import ArtifactError, pack_tensors, read_tensors
from saccade.checks import check_count
from saccade.data.cell import Cell, shown, text_of
from saccade.data.errors import DataError
from saccade.fields.base import Field, Padded, fields
from saccade.fields.graph_data import GeometricData, Graph
from saccade.fields.graph_files import load_graph, read_graph, save_graph
from saccade.fields.looking import Look, Seen
from saccade.fields.neighbours import Around, Neighbours
from saccade.fields.node_looks import NodeLook, attending_layers
from saccade.fields.node_maps import neighbour_maps, node_axis, seen_neighbours
from saccade.interpretation.explorer import Map, NodeAxis
from saccade.interpretation.recording import Trace
from saccade.layers.graph import degree_blocks
from saccade.registry import nearest

MOST_FEATURES = 1 << 28
"""The maximum size of a graph's features that become part of an exported model."""

TRAINED = "trained.safetensors"

CACHED = 4
"""The number of cached neighbourhoods: without sampling, every epoch has the same few batches."""


@fields.register("node")
class Node(Field):
    """A node of a graph, by its name, or by its number (from 0) if the nodes have no names.

    The graph is read when training starts, and copied into the run folder.

    Args:
        graph: a NumPy archive (.npz) with `edges` (count, 2), the features `x` (nodes, dim) or their CSR form
            (`x_indptr`, `x_indices`, `x_data`, `x_shape`), and optionally `edge_features` (count, edge_dim) and
            `labels` (nodes,), used only to colour drawings; or a folder with these arrays as `edges.npy`, `x.npy` and
            so on, whose features stay on disk; or a CSV, TSV or Parquet file of edges, with a header, two columns of
            node names and optionally features; or, in Python, a PyTorch Geometric `Data`.
        nodes: for a file of edges, the file of the nodes, also with a header: a name, then its features.
        hops: how many steps around a node the model sees: as many as it has layers.
        directed: a node attends only to nodes that have an edge to it; by default, edges go both ways.
        self_loops: a node also attends to itself.
        sample: in training, each node reads at most this many neighbours, drawn anew for each batch; all by default.
        inductive: training sees only the nodes of the training data and the edges between them.
        row_normalise: divide the features of a node by the sum of their absolute values.
        bad_edges: "error" stops at an edge to an unknown node, "skip" leaves such edges out and counts them.
    """

    def __init__(
        self,
        *,
        graph: str | GeometricData,
        nodes: str | None = None,
        hops: int = 2,
        directed: bool = False,
        self_loops: bool = True,
        sample: int | None = None,
        inductive: bool = False,
        row_normalise: bool = False,
        bad_edges: Literal["error", "skip"] = "error",
    ) -> None:
        check_count("hops", hops)
        if sample is not None:
            check_count("sample", sample)
        if bad_edges not in ("error", "skip"):
            raise ValueError(f"bad_edges must be 'error' or 'skip', got {bad_edges!r}.")
        self.files = graph, nodes
        self.hops = hops
        self.directed = directed
        self.self_loops = self_loops
        self.sample = sample
        self.inductive = inductive
        self.row_normalise = row_normalise
        self.bad_edges = bad_edges
        self._graph: Graph | None = None
        self._trained: NDArray[np.bool_] | None = None
        self._recent: dict[tuple[bool, bytes], Around] = {}

    @property
    def graph(self) -> Graph:
        """The graph, read when it is first needed."""
        if self._graph is None:
            self._use(read_graph(*self.files, skip=self.bad_edges == "skip"))
        assert self._graph is not None
        return self._graph

    def replace_graph(self, graph: str | GeometricData, nodes: str | None = None) -> None:
        """Replaces the graph, so that a trained model answers about the nodes of another one.

        Args:
            graph, nodes: as in the constructor; their features must mean the same.
        """
        found = read_graph(graph, nodes, skip=self.bad_edges == "skip")
        for of_new, of_old, what in (
            (found.features, self.graph.features, "node"),
            (found.edge_features, self.graph.edge_features, "edge"),
        ):
            new, old = (0 if each is None else each.shape[1] for each in (of_new, of_old))
            if new != old:
                raise DataError(f"a model for {old} features of each {what} cannot read a graph with {new}.")
        self._trained = None
        self._use(found)

    def _use(self, graph: Graph) -> None:
        self._graph = graph
        self._recent = {}
        self._places = {name: place for place, name in enumerate(graph.names)} if graph.names is not None else None
        ways = {"directed": self.directed, "self_loops": self.self_loops, "row_normalise": self.row_normalise}
        self._neighbours = Neighbours(graph, **ways)

    def read(self, raw: Any, cell: Cell) -> str:
        name = text_of(int(raw) if isinstance(raw, float) and raw.is_integer() else raw, cell).strip()
        place = self._place(name)
        if place is None:
            known = self.graph.names
            numbers = f"Nodes are numbered from 0 to {len(self.graph.features) - 1}."
            raise cell.bad(f"the graph has no node {shown(name)}", numbers if known is None else _similar(name, known))
        return self.graph.name(place)

    def _place(self, name: str) -> int | None:
        count = len(self.graph.features)
        if self._places is not None:
            return self._places.get(name)
        return int(name) if name.isdecimal() and len(name) < 12 and int(name) < count else None

    def fit(self, values: Iterable[Any]) -> None:
        graph = self.graph  # which must be read before it can be saved
        if self.inductive:
            self._trained = np.zeros(len(graph.features), dtype=bool)
            for value in values:
                self._trained[self.encode(value)] = True

    def sizes(self) -> dict[str, int]:
        found = {"dim": 5 if self._graph is None else self.graph.features.shape[1], "hops": self.hops}
        if self._graph is not None and self.graph.edge_features is not None:
            found["edge_dim"] = self.graph.edge_features.shape[1]
        return found

    def save(self, folder: Path) -> None:
        save_graph(self.graph, folder)
        if self._trained is not None:
            (folder / TRAINED).write_bytes(pack_tensors({"trained": torch.from_numpy(self._trained)}))

    def load(self, folder: Path) -> None:
        self._use(load_graph(folder))
        self._trained = None
        if self.inductive:
            trained = read_tensors(folder / TRAINED).get("trained")
            if trained is None or trained.dtype != torch.bool or trained.shape != (len(self.graph.features),):
                raise ArtifactError(f"{folder / TRAINED} is damaged: it must say for each node whether it was trained.")
            self._trained = trained.numpy()

    def encode(self, value: str) -> int:
        place = self._place(value)
        assert place is not None, "read() accepts only nodes of the graph"
        return place

    def pad(self, encoded: Sequence[int], generator: torch.Generator | None = None) -> Padded:
        places = np.asarray(encoded, dtype=np.int64)
        around = self._around(places, generator)
        return {"values": torch.from_numpy(np.searchsorted(around.nodes, places)), **around.tensors}

    def _around(self, places: NDArray[np.int64], generator: torch.Generator | None = None) -> Around:
        """The nodes within `hops` steps of these; with a generator, as training sees them."""
        centres = np.unique(places)
        _ = self.graph
        among = None if generator is None else self._trained
        if generator is not None and self.sample is not None:
            return self._neighbours.around(centres, self.hops, sample=self.sample, generator=generator, among=among)
        key = among is not None, centres.tobytes()
        if key not in self._recent:
            if len(self._recent) == CACHED:
                del self._recent[next(iter(self._recent))]
            self._recent[key] = self._neighbours.around(centres, self.hops, among=among)
        return self._recent[key]

    def axis(self, value: str, length: int | None = None) -> NodeAxis:
        graph, centre = self.graph, self.encode(value)
        return node_axis(graph, np.union1d(self._neighbours.read_by(np.array([centre]))[0], centre), centre)

    def maps(self, value: str, trace: Trace, answer: str, length: int | None = None) -> list[Map]:
        """Each layer's attention from the node, then the share of each node through all layers."""
        centre = self.encode(value)
        return self._maps(centre, self._around(np.array([centre])), trace)

    def _maps(self, centre: int, around: Around, trace: Trace, end: str = "") -> list[Map]:
        """The maps of one of the nodes that a model answered about; `end` names its side of a pair."""
        return neighbour_maps(self.graph, self._neighbours, centre, around, trace, end)

    def attended(self, values: Sequence[str], trace: Trace, mask: Tensor | None = None) -> list[Seen]:
        """The last layer's weights of the neighbours of each node."""
        places = np.array([self.encode(value) for value in values])
        return seen_neighbours(self.graph, places, self._around(places), trace)

    def look(self, trace: Trace, count: int, mask: Tensor | None = None) -> Look | None:
        """The last layer of a model with the whole graph built in."""
        blocks = degree_blocks(*(self.fixed()[name] for name in ("starts", "neighbours")))
        layers = attending_layers(trace, blocks)
        return (
            NodeLook(layers[-1][0], nodes=self._neighbours.count, rows=tuple(block.rows for block in blocks))
            if layers
            else None
        )

    def portable(self) -> dict[str, Any]:
        graph = self.graph
        if graph.features.size > MOST_FEATURES:
            raise ValueError(f"a graph of {len(graph.features):,} nodes is too large to be part of a file")
        names = [graph.name(node) for node in range(len(graph.features))]
        edges = {"starts": self._neighbours.starts.tolist(), "neighbours": self._neighbours.nodes.tolist()}
        return {"kind": "node", "names": names, **edges}

    def fixed(self) -> dict[str, Tensor]:
        _ = self.graph
        near = self._neighbours
        edges = {"starts": torch.from_numpy(near.starts), "neighbours": torch.from_numpy(near.nodes)}
        of_edges = near.edge_features()
        return {"features": near.features(), **edges, **({} if of_edges is None else {"edges": of_edges})}

    def stand_ins(self, count: int, length: int) -> Padded:
        return {"values": torch.arange(count) % len(self.graph.features)}

    def learned(self) -> str:
        return self.graph.described()


def _similar(name: str, names: Sequence[str]) -> str:
    hint = nearest(name, list(names)[:5000]).partition(" Choose from")[0].strip() if len(names) <= 5000 else ""
    return hint or "Correct the name."
