"""Graphs in memory: nodes with features, and edges between them."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from saccade.data.errors import DataError
from saccade.fields.graph_arrays import blocks, is_mapped

SKIP_EDGES = "bad_edges: skip, as in --task.inputs.node.bad_edges skip"
"""The option that leaves out edges to nodes that do not exist."""

LARGEST = float(np.finfo(np.float32).max)
"""Of the numbers that describe nodes and edges."""


class Graph(NamedTuple):
    """A graph whose nodes have features."""

    features: NDArray[Any]
    """(nodes, dim); 32-bit numbers, or any type if memory-mapped (`is_mapped`)."""
    edges: NDArray[np.int64]
    """(edges, 2): from, to."""
    names: list[str] | None = None
    """Of the nodes; None if they are numbers."""
    labels: list[str] | None = None
    """The class of each node, "" if unknown: to colour drawings, never an input of a model."""
    skipped: int = 0
    """How many edges to unknown nodes were left out."""
    edge_features: NDArray[Any] | None = None
    """(edges, edge_dim), like the features; None if edges have none."""

    def name(self, node: int) -> str:
        """The name of a node; its number if nodes have no names."""
        return str(node) if self.names is None else self.names[node]

    def described(self) -> str:
        """Its size, and what may be wrong with it: "2,708 nodes with 1,433 features, 5,429 edges, 3 isolated"."""
        count, dim = self.features.shape
        found = [f"{count:,} nodes with {dim:,} features", f"{len(self.edges):,} edges"]
        if self.edge_features is not None:
            found[-1] += f" with {self.edge_features.shape[1]:,}"
        loops = self.edges[:, 0] == self.edges[:, 1]
        twice = len(self.edges) - len(np.unique(self.edges[:, 0] * count + self.edges[:, 1]))
        if twice:
            found.append(f"{twice:,} of them duplicates")
        if loops.any():
            found.append(f"{int(loops.sum()):,} from a node to itself")
        alone = count - len(np.unique(self.edges[~loops]))
        if alone:
            found.append(f"{alone:,} isolated nodes")
        if self.skipped:
            found.append(f"{self.skipped:,} edges to unknown nodes left out")
        return ", ".join(found)


def made_graph(
    features: NDArray[Any],
    edges: NDArray[Any],
    where: str,
    *,
    skip: bool,
    edge_features: NDArray[Any] | None = None,
    labels: NDArray[Any] | None = None,
) -> Graph:
    """Makes a graph from arrays, which are checked; raises `DataError`, naming `where` they come from.

    Args:
        features: (nodes, dim).
        edges: (edges, 2).
        where: the file, for messages.
        skip: leave out edges to unknown nodes instead of raising.
        edge_features: (edges, edge_dim).
        labels: (nodes,).
    """
    features = _numbers(features, "features", "node", where)
    if edges.ndim != 2 or edges.shape[1] != 2 or not np.issubdtype(edges.dtype, np.integer):
        hint = " Transpose them." if edges.ndim == 2 and edges.shape[0] == 2 else ""
        raise DataError(f"{where}: edges must be integers of shape (count, 2), got {edges.dtype} {edges.shape}.{hint}")
    if edge_features is not None:
        if len(edge_features) != len(edges):
            raise DataError(f"{where}: {len(edges)} edges, but edge features for {len(edge_features)}.")
        edge_features = _numbers(edge_features, "edge_features", "edge", where) if len(edges) else None
    outside = ((edges < 0) | (edges >= len(features))).any(1)
    if outside.any() and not skip:
        row = int(outside.argmax())
        raise DataError(
            f"{where}: row {row} of edges is {tuple(edges[row].tolist())}, but nodes are numbered from 0 to "
            f"{len(features) - 1}. Correct it, or leave such edges out ({SKIP_EDGES})."
        )
    if outside.any() and edge_features is not None:
        edge_features = edge_features[~outside].astype(np.float32)
    names = None if labels is None else _labels(labels, len(features), where)
    return Graph(features, edges[~outside].astype(np.int64), None, names, int(outside.sum()), edge_features)


def _numbers(found: NDArray[Any], name: str, owner: str, where: str) -> NDArray[Any]:
    start = 0
    for block in blocks(found):
        with np.errstate(over="ignore"):
            wrong = np.argwhere(~np.isfinite(block.astype(np.float32)))
        if len(wrong):
            row, column = wrong[0].tolist()
            kind = "feature" if owner == "node" else name
            raise DataError(
                f"{where}: {kind} {column} of {owner} {start + row} is {block[row, column]}. "
                "Replace it with a finite number within 3e38."
            )
        start += len(block)
    return found if is_mapped(found) else found.astype(np.float32)


def _labels(found: NDArray[Any], count: int, where: str) -> list[str]:
    if found.shape != (count,) or found.dtype.kind not in "iuU":
        got = f"got {found.dtype} {found.shape}"
        raise DataError(f"{where}: labels must be one integer or string per node, shape ({count},), {got}.")
    names = ["" if label == -1 else str(label) for label in found.tolist()]
    if not "".join(names).isascii() and any("\ud800" <= letter <= "\udfff" for name in names for letter in name):
        raise DataError(f"{where}: a label contains half a character. Write labels in valid Unicode.")
    return names


@runtime_checkable
class GeometricData(Protocol):
    """What has the form of PyTorch Geometric's `Data`."""

    edge_index: Any
    num_nodes: Any
    x: Any


def from_pyg(data: GeometricData, *, skip: bool = False, where: str = "the graph in memory") -> Graph:
    """Converts a PyTorch Geometric graph: its `x`, `edge_index` and, if present, `edge_attr` and `y` (one per node).

    Without `x`, every node has the one feature 1.
    """
    edges = _array(data.edge_index).T
    count = int(data.num_nodes)
    x = np.ones((count, 1), np.float32) if data.x is None else _columns(_array(data.x), "x", where)
    attributes = getattr(data, "edge_attr", None)
    y = getattr(data, "y", None)
    labels = None if y is None else _array(y)
    if labels is not None and (labels.shape != (len(x),) or labels.dtype.kind not in "iu"):
        labels = None  # a label of the whole graph, several for each node, or a number
    found = None if attributes is None else _columns(_array(attributes), "edge_attr", where)
    return made_graph(x, edges, where, skip=skip, edge_features=found, labels=labels)


def _columns(found: NDArray[Any], name: str, where: str) -> NDArray[Any]:
    wide = found[:, None] if found.ndim == 1 else found
    if wide.ndim != 2 or not wide.shape[1] or wide.dtype.kind not in "biuf":
        raise DataError(f"{where}: {name} must be real numbers of shape (count, dim), got {found.dtype} {found.shape}.")
    return wide


def _array(tensor: Any) -> NDArray[Any]:
    return np.asarray(tensor.detach().cpu() if hasattr(tensor, "detach") else tensor)
