"""Graphs in files: NumPy archives, tables of edges and nodes, and what a run keeps of them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from saccade.artifacts import ArtifactError, pack_tensors, read_json, read_tensors, write_file
from saccade.data.errors import BadRow, DataError
from saccade.data.readers.csv_rows import csv_rows
from saccade.data.readers.files import check_file
from saccade.data.readers.lines import numbered_lines, suffix

FILE, NAMES = "graph.safetensors", "names.json"
MOST = 2**31


class Graph(NamedTuple):
    """A graph with features."""

    features: NDArray[np.float32]
    """(nodes, dim)."""
    edges: NDArray[np.int64]
    """(edges, 2): from, to."""
    names: list[str] | None
    """Of the nodes; None if they are numbers."""
    skipped: int = 0
    """Edges to nodes that do not exist, which were left out."""


def read_graph(graph: str, nodes: str | None, *, skip: bool) -> Graph:
    """The graph of a NumPy archive, or of a table of edges and one of nodes."""
    check_file(graph)
    if suffix(graph) == ".npz":
        if nodes is not None:
            raise DataError(f"{graph} holds edges and features: leave nodes out.")
        return _from_archive(graph, skip)
    if nodes is None:
        raise DataError(f"{graph} holds edges; say where the features of the nodes are (nodes: nodes.csv).")
    check_file(nodes)
    names, features = _read_nodes(nodes)
    edges, skipped = _read_edges(graph, {name: place for place, name in enumerate(names)}, skip)
    return Graph(features, edges, names, skipped)


def _from_archive(path: str, skip: bool) -> Graph:
    try:
        with np.load(path, allow_pickle=False) as archive:
            found = {name: archive[name] for name in archive.files}
    except (ValueError, OSError, KeyError, zipfile.BadZipFile, EOFError) as error:
        raise DataError(f"{path} is not a NumPy archive of plain arrays ({error}).") from None
    for name in ("edges", *(() if "x" in found else ("x_indptr", "x_indices", "x_data", "x_shape"))):
        if name not in found:
            raise DataError(f"{path} has no array {name!r}. It has: {', '.join(found) or 'none'}.")
    features = _dense(found, path)
    wrong = np.argwhere(~np.isfinite(features))
    if len(wrong):
        node, column = wrong[0].tolist()
        raise DataError(f"{path}: feature {column} of node {node} is {features[node, column]}. Replace it by a number.")
    edges = found["edges"]
    if edges.ndim != 2 or edges.shape[1] != 2 or not np.issubdtype(edges.dtype, np.integer):
        raise DataError(f"{path}: edges must be whole numbers (count, 2), got {edges.dtype} {edges.shape}.")
    outside = ((edges < 0) | (edges >= len(features))).any(1)
    if outside.any() and not skip:
        row = int(outside.argmax())
        raise DataError(
            f"{path}: edge {row} is {tuple(edges[row].tolist())}, but nodes are numbers from 0 to {len(features) - 1}. "
            "Correct it, or set bad_edges: skip."
        )
    return Graph(features, edges[~outside].astype(np.int64), None, int(outside.sum()))


def _dense(found: dict[str, NDArray[np.generic]], path: str) -> NDArray[np.float32]:
    if "x" in found:
        if found["x"].ndim != 2 or not np.issubdtype(found["x"].dtype, np.number):
            raise DataError(f"{path}: x must be numbers (nodes, dim), got {found['x'].dtype} {found['x'].shape}.")
        return found["x"].astype(np.float32)
    starts, columns, data, shape = (found[f"x_{name}"] for name in ("indptr", "indices", "data", "shape"))
    fits = shape.shape == (2,) and starts.ndim == columns.ndim == data.ndim == 1 and len(columns) == len(data)
    count, dim = (int(size) for size in shape) if fits else (0, 0)
    starts, columns = starts.astype(np.int64), columns.astype(np.int64)
    if (
        not fits
        or not 0 < count * dim < MOST
        or len(starts) != count + 1
        or (np.diff(starts) < 0).any()
        or starts[0] != 0
        or starts[-1] != len(columns)
        or (len(columns) and (columns.min() < 0 or columns.max() >= dim))
    ):
        raise DataError(f"{path}: x_indptr, x_indices, x_data and x_shape do not make a CSR matrix.")
    features = np.zeros((count, dim), dtype=np.float32)
    features[np.repeat(np.arange(count), np.diff(starts)), columns] = data.astype(np.float32)
    return features


def _read_nodes(path: str) -> tuple[list[str], NDArray[np.float32]]:
    names: dict[str, None] = {}
    rows: list[list[float]] = []
    width: int | None = None
    for line, cells in _rows(path):
        if len(cells) < 2 or (width is not None and len(cells) != width):
            wanted = "a name and at least one number" if width is None else f"{width} columns"
            raise BadRow(path, line, f"{len(cells)} columns instead of {wanted}", "Give every node all features.")
        width = len(cells)
        if cells[0] in names:
            raise BadRow(path, line, f"the node {cells[0]!r:.60} is there twice", "Remove one of them.")
        names[cells[0]] = None
        rows.append([_number(cell, path, line, column) for column, cell in enumerate(cells[1:], start=1)])
    if not rows:
        raise DataError(f"{path} has no nodes.")
    return list(names), np.asarray(rows, dtype=np.float32)


def _number(cell: str, path: str, line: int, column: int) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        raise BadRow(path, line, f"feature {column} is {cell!r:.40}", "Write a finite number.")
    return value


def _read_edges(path: str, places: dict[str, int], skip: bool) -> tuple[NDArray[np.int64], int]:
    edges: list[tuple[int, int]] = []
    skipped = 0
    for line, cells in _rows(path):
        if len(cells) < 2:
            raise BadRow(path, line, f"{len(cells)} columns instead of two", "Write the two nodes of an edge.")
        unknown = next((name for name in cells[:2] if name not in places), None)
        if unknown is None:
            edges.append((places[cells[0]], places[cells[1]]))
        elif skip:
            skipped += 1
        else:
            fix = "Correct it, add the node, or set bad_edges: skip."
            raise BadRow(path, line, f"there is no node {unknown!r:.60}", fix)
    return np.asarray(edges, dtype=np.int64).reshape(-1, 2), skipped


def _rows(path: str) -> list[tuple[int, list[str]]]:
    """The rows after the header."""
    tabs = suffix(path) == ".tsv"
    found = []
    for line, row in numbered_lines(Path(path)) if tabs else csv_rows(Path(path)):
        if isinstance(row, BadRow):
            raise row
        found.append((line, [cell.strip() for cell in (row.split("\t") if isinstance(row, str) else row)]))
    return found[1:]


def save_graph(graph: Graph, folder: Path) -> None:
    """Writes a graph into a run folder."""
    tensors = {"features": torch.from_numpy(graph.features), "edges": torch.from_numpy(graph.edges)}
    (folder / FILE).write_bytes(pack_tensors(tensors))
    if graph.names is not None:
        write_file(folder / NAMES, json.dumps(graph.names, ensure_ascii=False))


def load_graph(folder: Path) -> Graph:
    """Reads what `save_graph` wrote."""
    path = folder / FILE
    found = read_tensors(path)
    features, edges = found.get("features"), found.get("edges")
    if features is None or features.ndim != 2 or features.dtype != torch.float32 or not len(features):
        raise ArtifactError(f"{path} is damaged: it has no features (nodes, dim).")
    if edges is None or edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype != torch.int64:
        raise ArtifactError(f"{path} is damaged: it has no edges (count, 2).")
    if len(edges) and (int(edges.min()) < 0 or int(edges.max()) >= len(features)):
        raise ArtifactError(f"{path} is damaged: an edge names a node that does not exist.")
    names = None
    if (folder / NAMES).is_file():
        names = read_json(folder / NAMES)
        known = isinstance(names, list) and all(isinstance(name, str) for name in names)
        if not known or len(names) != len(features) or len(set(names)) != len(names):
            raise ArtifactError(f"{folder / NAMES} is damaged: it must name each of {len(features)} nodes once.")
    return Graph(features.numpy(), edges.numpy(), names)
