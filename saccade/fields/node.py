"""Nodes of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from saccade.checks import check_count
from saccade.data.cell import Cell, shown, text_of
from saccade.fields.base import Field, Padded, fields
from saccade.fields.graph_files import Graph, load_graph, read_graph, save_graph
from saccade.fields.looking import Look, Seen
from saccade.fields.node_looks import NodeLook, attending_layers
from saccade.interpretation.explorer import Map, NodeAxis
from saccade.interpretation.recording import Trace
from saccade.layers.graph import Block, degree_blocks
from saccade.registry import nearest

DRAWN = 60
"""Nodes in a drawing that also shows what the neighbours attend to; a larger one shows the node itself alone."""

MOST_FEATURES = 1 << 28
"""Numbers that describe the nodes of a graph which becomes part of an exported model."""

CACHED = 4
"""Neighbourhoods that are kept: without sampling, every epoch has the same few batches."""


class Around(NamedTuple):
    """The part of the graph that decides about a batch of nodes."""

    nodes: NDArray[np.int64]
    """(found,): their numbers in the whole graph, in ascending order."""
    steps: NDArray[np.int64]
    """(found,): how far each is from the batch."""
    tensors: Padded
    """features, starts and neighbours, by the places in `nodes`; the outermost nodes have no neighbours."""

    def blocks(self) -> list[Block]:
        """The blocks in which a model reads it."""
        return degree_blocks(self.tensors["starts"], self.tensors["neighbours"])


@fields.register("node")
class Node(Field):
    """A node of a graph, by its name, or by its number (from 0) if the nodes have no names.

    The graph is read from files when training starts, and copied into the run folder.

    Args:
        graph: a NumPy archive (.npz) with `edges` (count, 2), the features `x` (nodes, dim) or their CSR form
            (`x_indptr`, `x_indices`, `x_data`, `x_shape`), and optionally `labels` (nodes,), used only to colour
            drawings; or a CSV or TSV file of edges, with a header and two columns of node names.
        nodes: for a file of edges, the CSV or TSV file of the nodes, with a header: a name, then its features.
        hops: how many steps around a node the model sees: as many as it has layers.
        directed: a node attends only to nodes that have an edge to it; by default, edges work in both directions.
        self_loops: a node also attends to itself.
        row_normalise: divide the features of a node by the sum of their absolute values.
        bad_edges: "error" stops at an edge to an unknown node, "skip" leaves such edges out and counts them.
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
        self._recent: dict[bytes, Around] = {}

    @property
    def graph(self) -> Graph:
        """The graph, read when it is first needed."""
        if self._graph is None:
            self._use(read_graph(*self.files, skip=self.bad_edges == "skip"))
        assert self._graph is not None
        return self._graph

    def _use(self, graph: Graph) -> None:
        self._graph = graph
        self._recent = {}
        count = len(graph.features)
        edges = graph.edges if self.directed else np.concatenate([graph.edges, graph.edges[:, ::-1]])
        if self.self_loops:
            loops = np.arange(count)
            edges = np.concatenate([edges, np.stack([loops, loops], axis=1)])
        codes = np.unique(edges[:, 1] * count + edges[:, 0])  # sorted by the node that attends, without duplicates
        self._starts = np.searchsorted(codes, np.arange(count + 1) * count)
        self._neighbours = codes % count
        self._places = {name: place for place, name in enumerate(graph.names)} if graph.names is not None else None
        sums = np.abs(graph.features).sum(1, keepdims=True) if self.row_normalise else 1.0
        self._features = torch.from_numpy(graph.features / np.maximum(sums, 1e-12, dtype=np.float32))

    def read(self, raw: Any, cell: Cell) -> str:
        name = text_of(int(raw) if isinstance(raw, float) and raw.is_integer() else raw, cell).strip()
        place = self._place(name)
        if place is None:
            known = self.graph.names
            numbers = f"Nodes are numbered from 0 to {len(self.graph.features) - 1}."
            raise cell.bad(f"the graph has no node {shown(name)}", numbers if known is None else _similar(name, known))
        return self._name(place)

    def _place(self, name: str) -> int | None:
        count = len(self.graph.features)
        if self._places is not None:
            return self._places.get(name)
        return int(name) if name.isdecimal() and len(name) < 12 and int(name) < count else None

    def fit(self, values: Iterable[str]) -> None:
        _ = self.graph  # there is nothing to learn, but the graph must be read before it can be saved

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
        places = np.asarray(encoded, dtype=np.int64)
        around = self._around(places)
        return {"values": torch.from_numpy(np.searchsorted(around.nodes, places)), **around.tensors}

    def _around(self, places: NDArray[np.int64]) -> Around:
        """The nodes within `hops` steps of these."""
        centres = np.unique(places)
        key = centres.tobytes()
        if key not in self._recent:
            if len(self._recent) == CACHED:
                del self._recent[next(iter(self._recent))]
            self._recent[key] = self._search(centres)
        return self._recent[key]

    def _search(self, centres: NDArray[np.int64]) -> Around:
        far = self.hops + 1
        steps = np.full(len(self.graph.features), far)
        steps[centres] = 0
        reached = centres
        for step in range(1, far):
            near = self._read_by(reached)[0]
            reached = np.unique(near[steps[near] == far])
            if not len(reached):  # whatever `hops` says
                break
            steps[reached] = step
        nodes = np.flatnonzero(steps < far)
        inner = steps[nodes] < self.hops
        neighbours, degrees = self._read_by(nodes[inner])
        starts = np.zeros(len(nodes) + 1, dtype=np.int64)
        starts[1:][inner] = degrees
        tensors = {
            "features": self._features[torch.from_numpy(nodes)],
            "starts": torch.from_numpy(starts.cumsum()),
            "neighbours": torch.from_numpy(np.searchsorted(nodes, neighbours)),
        }
        return Around(nodes, steps[nodes], tensors)

    def _read_by(self, nodes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The neighbours of these nodes, one node after another, and how many each has."""
        starts = self._starts[nodes]
        degrees = self._starts[nodes + 1] - starts
        shift = np.repeat(starts - degrees.cumsum() + degrees, degrees)
        return self._neighbours[shift + np.arange(len(shift))], degrees

    def axis(self, value: str, length: int | None = None) -> NodeAxis:
        centre = self.encode(value)
        return self._axis(np.union1d(self._read_by(np.array([centre]))[0], centre), centre)

    def _axis(self, nodes: NDArray[np.int64], centre: int) -> NodeAxis:
        labels = self.graph.labels
        return NodeAxis(
            names=[self._name(node) for node in nodes.tolist()],
            labels=None if labels is None else [labels[node] for node in nodes.tolist()],
            centre=int(np.searchsorted(nodes, centre)),
        )

    def maps(self, value: str, trace: Trace, answer: str, length: int | None = None) -> list[Map]:
        """Each layer's attention from the node and, in a small graph, from all nodes that influence the answer.

        A node n steps away influences it through all layers but the last n. Beyond that, the weights are meaningless:
        the nodes they depend on are not all there.
        """
        centre = self.encode(value)
        around = self._around(np.array([centre]))
        layers = attending_layers(trace, around.blocks())
        maps = []
        for number, (path, blocks) in enumerate(layers):
            reach = len(layers) - 1 - number if len(around.nodes) <= DRAWN else 0
            queries = np.flatnonzero(around.steps <= reach)
            read = self._read_by(around.nodes[queries])[0]
            keys = np.searchsorted(around.nodes, np.union1d(read, centre))
            weights = torch.zeros(blocks[0][1].shape[1], len(queries), len(around.nodes))
            place_of = torch.full((len(around.nodes),), -1)
            place_of[torch.from_numpy(queries)] = torch.arange(len(queries))
            for block, of_block in blocks:
                row, column = (block.mask & (place_of[block.rows] >= 0).unsqueeze(1)).nonzero(as_tuple=True)
                weights[:, place_of[block.rows[row]], block.neighbours[row, column]] = of_block[row, :, column].T
            drawn = weights[:, :, torch.from_numpy(keys)]
            rows, columns = (self._axis(around.nodes[places], centre) for places in (queries, keys))
            maps.append(Map(name=path, weights=drawn, queries=rows, keys=columns, layer=number))
        return maps

    def attended(self, values: Sequence[str], trace: Trace, mask: Tensor | None = None) -> list[Seen]:
        """The last layer's weights of the neighbours of each node."""
        places = np.array([self.encode(value) for value in values])
        around = self._around(places)
        layers = attending_layers(trace, around.blocks())
        if not layers:
            return []
        found: dict[int, Seen] = {}
        for block, weights in layers[-1][1]:
            for row, node in enumerate(around.nodes[block.rows.numpy()].tolist()):
                near = self._read_by(np.array([node]))[0].tolist()
                found[node] = Seen([self._name(each) for each in near], weights[row].mean(0)[: len(near)])
        return [found.get(place, Seen([self._name(place)], torch.zeros(1))) for place in places.tolist()]

    def look(self, trace: Trace, count: int, mask: Tensor | None = None) -> Look | None:
        """The last layer of a model that has the whole graph inside."""
        blocks = degree_blocks(*(self.fixed()[name] for name in ("starts", "neighbours")))
        layers = attending_layers(trace, blocks)
        return (
            NodeLook(layers[-1][0], nodes=len(self._features), rows=tuple(block.rows for block in blocks))
            if layers
            else None
        )

    def portable(self) -> dict[str, Any]:
        graph = self.graph
        if graph.features.size > MOST_FEATURES:
            raise ValueError(f"a graph of {len(graph.features):,} nodes is too large to be part of a file")
        names = [self._name(node) for node in range(len(graph.features))]
        edges = {"starts": self._starts.tolist(), "neighbours": self._neighbours.tolist()}
        return {"kind": "node", "names": names, **edges}

    def fixed(self) -> dict[str, Tensor]:
        _ = self.graph
        edges = {"starts": torch.from_numpy(self._starts), "neighbours": torch.from_numpy(self._neighbours)}
        return {"features": self._features, **edges}

    def stand_ins(self, count: int, length: int) -> Padded:
        return {"values": torch.arange(count) % len(self.graph.features)}

    def _name(self, node: int) -> str:
        return str(node) if self.graph.names is None else self.graph.names[node]

    def learned(self) -> str:
        graph = self.graph
        found = [f"{len(graph.features):,} nodes with {graph.features.shape[1]:,} features, {len(graph.edges):,} edges"]
        linked = graph.edges[graph.edges[:, 0] != graph.edges[:, 1]]
        alone = len(graph.features) - len(np.unique(linked))
        if alone:
            found.append(f"{alone:,} isolated")
        if graph.skipped:
            found.append(f"{graph.skipped:,} edges to unknown nodes left out")
        return ", ".join(found)


def _similar(name: str, names: Sequence[str]) -> str:
    hint = nearest(name, list(names)[:5000]).partition(" Choose from")[0].strip() if len(names) <= 5000 else ""
    return hint or "Correct the name, or skip such rows with --data.bad_rows skip."
