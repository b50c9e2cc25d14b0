"""Small graphs, one per value: molecules, parse trees, scenes."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from saccade.artifacts import ArtifactError, JsonObject, read_json, write_file
from saccade.data.cell import Cell
from saccade.fields.base import Field, Padded, fields
from saccade.fields.graph_cells import read_cell
from saccade.fields.graph_data import Graph
from saccade.fields.neighbours import Neighbours
from saccade.fields.node_looks import attending_layers
from saccade.interpretation.explorer import Map, NodeAxis
from saccade.interpretation.recording import Trace
from saccade.layers.graph import degree_blocks

FILE = "graph.json"
FURTHEST = 1e6
"""Standard deviations from the mean: a number further away, which can only be a mistake, would overflow in a model."""
MOST_TAGS = 10_000
"""The maximum number of different tags of nodes or edges; with more, they are probably names."""


@fields.register("graph")
class GraphField(Field):
    """A small graph: an object with `edges` [[0, 1], [1, 2], ...], whose nodes are numbered from 0, and any of `tags`
    (the kind of each node), `features` (numbers of each node), `edge_tags`, `edge_features` and `names`; or, in Python,
    a PyTorch Geometric `Data`. A folder in the TU format is read as a table of such graphs with their labels.

    A model sees each kind of node as a separate feature, and numbers scaled to mean 0 and variance 1 on the training
    data.

    Args:
        directed: a node attends only to nodes that have an edge to it; by default, edges go both ways.
        self_loops: a node also attends to itself.
        degrees: add the number of a node's neighbours, on a logarithmic scale, to its features.
        max_nodes: training leaves out larger graphs. Graphs of more than a million nodes are always rejected.
    """

    unit = "nodes"

    def __init__(
        self, *, directed: bool = False, self_loops: bool = True, degrees: bool = False, max_nodes: int = 10_000
    ) -> None:
        self.directed = directed
        self.self_loops = self_loops
        self.degrees = degrees
        self.max_nodes = max_nodes
        self.kinds: dict[str, list[str]] = {"tags": [], "edge_tags": []}
        self.moments: dict[str, list[list[float]]] = {"features": [], "edge_features": []}
        self._seen = ""

    @property
    def longest(self) -> int | None:
        return self.max_nodes

    def read(self, raw: Any, cell: Cell) -> dict[str, Any]:
        return read_cell(raw, cell)

    def fit(self, values: Iterable[dict[str, Any]]) -> None:
        counts: dict[str, Counter[str]] = {name: Counter() for name in self.kinds}
        sums: dict[str, Any] = {}
        graphs = nodes = edges = alone = twice = 0
        for value in values:
            graphs, nodes, edges = graphs + 1, nodes + value["nodes"], edges + len(value["edges"])
            pairs = {tuple(edge) for edge in value["edges"]}
            twice += len(value["edges"]) - len(pairs)
            alone += value["nodes"] - len({end for a, b in pairs if a != b for end in (a, b)})
            for name, count in counts.items():
                count.update(value.get(name) or ())
            for name in self.moments:
                rows = np.asarray(value.get(name) or [], dtype=np.float64)
                if len(rows):
                    if name in sums and sums[name][1].shape != rows.shape[1:]:
                        raise ValueError(f"graphs have different numbers of {name}: give all the same.")
                    sums[name] = _joined(sums.get(name), rows)
        for name, count in counts.items():
            if len(count) > MOST_TAGS:
                raise ValueError(f"{len(count):,} different {name} are too many: are they names?")
            self.kinds[name] = sorted(count)
        for name, (number, mean, squares) in sums.items():
            spread = np.sqrt(squares / number)
            self.moments[name] = [mean.tolist(), np.where(spread > 1e-6, spread, 1.0).tolist()]
        found = [f"{graphs:,} graphs, {nodes:,} nodes, {edges:,} edges"]
        found += [f"{len(self.kinds[name])} {name.replace('_', ' ')}" for name in self.kinds if self.kinds[name]]
        found += [f"{twice:,} duplicate edges"] * bool(twice) + [f"{alone:,} isolated nodes"] * bool(alone)
        self._seen = ", ".join(found)

    def sizes(self) -> dict[str, int]:
        found = {"dim": self._width("tags", "features") + self.degrees or 1}
        edge_dim = self._width("edge_tags", "edge_features")
        return {**found, "edge_dim": edge_dim} if edge_dim else found

    def _width(self, tags: str, features: str) -> int:
        return len(self.kinds[tags]) + (len(self.moments[features][0]) if self.moments[features] else 0)

    def save(self, folder: Path) -> None:
        write_file(folder / FILE, json.dumps({**self.kinds, **self.moments}, ensure_ascii=False))

    def load(self, folder: Path) -> None:
        path = folder / FILE
        about = JsonObject(read_json(path), str(path))
        for name in self.kinds:
            tags = about.take(name, list)
            if any(type(tag) is not str for tag in tags) or len(set(tags)) != len(tags):
                raise ArtifactError(f"{path} is damaged: {name} must be different texts.")
            self.kinds[name] = tags
        for name in self.moments:
            pair = about.take(name, list)
            if pair and not _are_moments(pair):
                raise ArtifactError(f"{path} is damaged: {name} must be finite means, and deviations above 0.")
            self.moments[name] = pair

    def encode(self, value: dict[str, Any]) -> dict[str, Any]:
        return {
            "nodes": value["nodes"],
            "edges": [end for edge in value["edges"] for end in edge],
            "x": self._numbers(value, "tags", "features", value["nodes"]).ravel().tolist(),
            "e": self._numbers(value, "edge_tags", "edge_features", len(value["edges"])).ravel().tolist(),
        }

    def _numbers(self, value: dict[str, Any], tags: str, features: str, count: int) -> np.ndarray[Any, Any]:
        """(count, width): the features of nodes or edges that a model sees."""
        places = {tag: place for place, tag in enumerate(self.kinds[tags])}
        found = np.zeros((count, self._width(tags, features)), dtype=np.float32)
        for row, tag in enumerate(value.get(tags) or ()):
            if tag in places:
                found[row, places[tag]] = 1.0
        if self.moments[features] and value.get(features):
            mean, spread = np.asarray(self.moments[features])
            rows = np.asarray(value[features], dtype=np.float64)
            if rows.shape[1:] != mean.shape:
                raise ValueError(f"a model for {len(mean)} {features} cannot read a graph with {rows.shape[1]}.")
            found[:, len(places) :] = np.clip((rows - mean) / spread, -FURTHEST, FURTHEST)
        return found

    def size(self, encoded: dict[str, Any]) -> int:
        return int(encoded["nodes"])

    def left_out(self, encoded: dict[str, Any]) -> str | None:
        return f"larger than max_nodes={self.max_nodes}" if encoded["nodes"] > self.max_nodes else None

    def pad(self, encoded: Sequence[dict[str, Any]], generator: torch.Generator | None = None) -> Padded:
        counts = [each["nodes"] for each in encoded]
        width, edge_dim = self._width("tags", "features"), self._width("edge_tags", "edge_features")
        longest, dim = max(counts), self.sizes()["dim"]
        values = np.zeros((len(encoded), longest, dim), dtype=np.float32)
        pairs = []
        for row, each in enumerate(encoded):
            values[row, : each["nodes"], :width] = np.asarray(each["x"], dtype=np.float32).reshape(each["nodes"], width)
            pairs.append(np.asarray(each["edges"], dtype=np.int64).reshape(-1, 2) + row * longest)
        edges = np.concatenate(pairs)
        together: NDArray[np.float32] | None = None
        if edge_dim:
            together = np.concatenate([np.asarray(each["e"], dtype=np.float32) for each in encoded])
            together = together.reshape(-1, edge_dim)
        if self.degrees:
            near = np.bincount(edges.ravel(), minlength=len(encoded) * longest)
            values[:, :, -1] = np.log1p(near).reshape(values.shape[:2])
        elif not width:
            values[:, :, -1] = 1.0  # graphs of edges alone
        graph = Graph(values.reshape(-1, dim), edges, edge_features=together)
        found = Neighbours(graph, directed=self.directed, self_loops=self.self_loops)
        of_all = found.edge_features()
        return {
            "values": torch.from_numpy(values),
            "mask": torch.arange(longest) < torch.tensor(counts).unsqueeze(1),
            "starts": torch.from_numpy(found.starts),
            "neighbours": torch.from_numpy(found.nodes),
            **({} if of_all is None else {"edges": of_all}),
        }

    def portable(self) -> dict[str, Any]:
        how = {"directed": self.directed, "self_loops": self.self_loops, "degrees": self.degrees}
        return {"kind": "graph", **how, **self.kinds, **self.moments}

    def stand_ins(self, count: int, length: int) -> Padded:
        sizes, degree = self.sizes(), length + 4
        found = {
            "values": torch.randn(count, length, sizes["dim"]),
            "mask": torch.arange(length) < torch.arange(length, length - count, -1).clamp(min=1).unsqueeze(1),
            "near": torch.randint(count * length, (count, length, degree)),
            "near_mask": torch.rand(count, length, degree) < 0.5,
        }
        of_edges = sizes.get("edge_dim")
        return found if of_edges is None else {**found, "edges": torch.randn(count, length, degree, of_edges)}

    def axis(self, value: dict[str, Any], length: int | None = None) -> NodeAxis:
        tags = value.get("tags")
        names = value.get("names") or [
            str(node) if tags is None else f"{tags[node]} {node}" for node in range(value["nodes"])
        ]
        return NodeAxis(names=names, labels=tags)

    def maps(self, value: dict[str, Any], trace: Trace, answer: str, length: int | None = None) -> list[Map]:
        """Each layer's attention between the nodes, and what pooled them."""
        axis, padded = self.axis(value), self.pad([self.encode(value)])
        blocks = degree_blocks(padded["starts"], padded["neighbours"])
        layers = attending_layers(trace, blocks)
        maps = []
        for number, (path, parts) in enumerate(layers):
            weights = torch.zeros(parts[0][1].shape[1], len(axis), len(axis))
            for block, of_block in parts:
                row, column = block.mask.nonzero(as_tuple=True)
                weights[:, block.rows[row], block.neighbours[row, column]] = of_block[row, :, column].T
            maps.append(Map(name=path, weights=weights, queries=axis, keys=axis, layer=number))
        for path in trace.paths:
            call = trace[path] if path not in dict(layers) else None
            if call is not None and call.shape[0] == 1 and call.shape[3] == len(axis):
                pooled = call.weights[0].float().cpu().flatten(0, 1).unsqueeze(1)
                asking = NodeAxis(names=[f"answer {answer}" if answer in axis.names else answer])  # no node's name
                maps.append(Map(name=path, weights=pooled, queries=asking, keys=axis, layer=len(layers)))
        return maps

    def show(self, value: dict[str, Any]) -> str:
        return f"graph of {value['nodes']} nodes and {len(value['edges'])} edges"

    def learned(self) -> str:
        return self._seen

    def unknown(self, value: dict[str, Any]) -> list[str]:
        return sorted({tag for name in self.kinds for tag in value.get(name) or () if tag not in self.kinds[name]})


def _joined(
    before: tuple[int, NDArray[np.float64], NDArray[np.float64]] | None, rows: NDArray[np.float64]
) -> tuple[int, NDArray[np.float64], NDArray[np.float64]]:
    """The count, the mean and the squared distances from it, of those before and these rows; without cancellation."""
    count, mean = len(rows), rows.mean(0)
    squares = np.square(rows - mean).sum(0)
    if before is None:
        return count, mean, squares
    all_ = before[0] + count
    step = mean - before[1]
    return all_, before[1] + step * count / all_, before[2] + squares + step**2 * before[0] * count / all_


def _are_moments(pair: Any) -> bool:
    if len(pair) != 2 or any(not isinstance(each, list) for each in pair) or len(pair[0]) != len(pair[1]):
        return False
    numbers = [*pair[0], *pair[1]]
    return all(type(n) in (int, float) and math.isfinite(n) for n in numbers) and all(n > 0 for n in pair[1])
