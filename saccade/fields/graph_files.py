"""Graphs in files: NumPy arrays, tables of edges and nodes, and the copy in a run folder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from saccade.artifacts import ArtifactError, JsonObject, pack_tensors, read_json, read_tensors, write_file
from saccade.data.errors import BadRow, DataError
from saccade.data.readers.files import check_file
from saccade.data.readers.lines import suffix
from saccade.fields.graph_arrays import CSR, is_mapped, mapped_rows, read_archive, read_folder, write_rows
from saccade.fields.graph_data import GeometricData, Graph, from_pyg, made_graph
from saccade.fields.graph_tables import read_tables

FILE, NODES = "graph.safetensors", "nodes.json"
FEATURES, OF_EDGES = "features.npy", "edge_features.npy"
"""The arrays that are memory-mapped if the graph is given as a folder."""

MOST = 2**31
"""The maximum size of a feature matrix: a larger one would not fit into memory when dense."""


def read_graph(graph: str | GeometricData, nodes: str | None, *, skip: bool) -> Graph:
    """Reads a NumPy archive, a folder of NumPy arrays, a table of edges and one of nodes, or a graph in memory.

    Args:
        graph: the archive, the folder, the table of edges, or a PyTorch Geometric `Data`.
        nodes: the table of nodes, for a table of edges.
        skip: leave out edges to unknown nodes instead of raising `DataError`.
    """
    if isinstance(graph, GeometricData):
        return from_pyg(graph, skip=skip)
    folder = os.path.isdir(graph)
    if not folder:
        check_file(graph)
    if folder or suffix(graph) == ".npz":
        if nodes is not None:
            raise DataError(f"{graph} already has the features of the nodes: remove nodes: {nodes}.")
        return _from_arrays(graph, skip, *(read_folder if folder else read_archive)(graph))
    if nodes is None:
        raise DataError(f"{graph} has only edges: name the file with the features of the nodes (nodes: nodes.csv).")
    check_file(nodes)
    try:
        return read_tables(graph, nodes, skip=skip)
    except BadRow as error:  # a row of the graph is none of the data, which may be skipped
        raise DataError(str(error)) from None


def write_graph(graph: GeometricData, path: str | Path) -> None:
    """Writes a PyTorch Geometric `Data` as a NumPy archive that `read_graph` reads."""
    found = from_pyg(graph)
    arrays: dict[str, NDArray[Any]] = {"edges": found.edges, "x": found.features}
    if found.edge_features is not None:
        arrays["edge_features"] = found.edge_features
    if found.labels is not None:
        arrays["labels"] = np.array(found.labels)
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]


def _from_arrays(path: str, skip: bool, found: dict[str, NDArray[Any]], names: list[str]) -> Graph:
    folder = os.path.isdir(path)
    for name in ("edges", *(("x",) if folder or "x" in found else CSR)):
        if name not in found:
            kind = f"file {name}.npy" if folder else f"array {name!r}"
            raise DataError(f"{path} has no {kind}. It has: {', '.join(names)[:200] or 'none'}.")
    of_edges = found.get("edge_features")
    if of_edges is not None and (of_edges.ndim != 2 or not of_edges.shape[1] or of_edges.dtype.kind not in "biuf"):
        got = f"got {of_edges.dtype} {of_edges.shape}"
        raise DataError(f"{path}: edge_features must be real numbers of shape (edges, dim), {got}.")
    features, labels = _dense(found, path), found.get("labels")
    return made_graph(features, found["edges"], path, skip=skip, edge_features=of_edges, labels=labels)


def _dense(found: dict[str, NDArray[Any]], path: str) -> NDArray[Any]:
    if "x" in found:
        x = found["x"]
        if x.ndim != 2 or not x.size or x.dtype.kind not in "biuf":
            raise DataError(f"{path}: x must be real numbers of shape (nodes, dim), got {x.dtype} {x.shape}.")
        return x
    starts, columns, data, shape = (found[name] for name in CSR)
    whole = all(array.dtype.kind in "iu" for array in (starts, columns, shape)) and data.dtype.kind in "biuf"
    fits = whole and shape.shape == (2,) and starts.ndim == columns.ndim == data.ndim == 1
    count, dim = shape.tolist() if fits else (0, 0)
    if (
        not fits
        or min(count, dim) < 1
        or count * dim >= MOST
        or len(columns) != len(data)
        or len(starts) != count + 1
        or (np.diff(starts.astype(np.int64)) < 0).any()
        or starts[0] != 0
        or starts[-1] != len(columns)
        or (len(columns) and (columns.min() < 0 or columns.max() >= dim))
    ):
        raise DataError(f"{path}: {', '.join(CSR)} do not form a CSR matrix. Take them from scipy.sparse.csr_matrix.")
    features = np.zeros((count, dim), dtype=np.float32)
    rows = np.repeat(np.arange(count), np.diff(starts).astype(np.int64))
    np.add.at(features, (rows, columns), data)  # as SciPy does, entries given twice add up
    return features


def save_graph(graph: Graph, folder: Path) -> None:
    """Writes a graph into a run folder; features that stay in files are copied from file to file."""
    tensors = {"edges": torch.from_numpy(graph.edges)}
    for name, file, array in (
        ("features", FEATURES, graph.features),
        ("edge_features", OF_EDGES, graph.edge_features),
    ):
        (folder / file).unlink(missing_ok=True)
        if array is not None and is_mapped(array):
            write_rows(array, folder / file)
        elif array is not None:
            tensors[name] = torch.from_numpy(array)
    (folder / FILE).write_bytes(pack_tensors(tensors))
    about = {"names": graph.names, "labels": graph.labels, "skipped": graph.skipped}
    write_file(folder / NODES, json.dumps(about, ensure_ascii=False))


def load_graph(folder: Path) -> Graph:
    """Reads what `save_graph` wrote."""
    path = folder / FILE
    found = read_tensors(path)
    features, of_edges = (
        mapped_rows(folder / file) if (folder / file).exists() else _finite(found.get(name), name, path)
        for name, file in (("features", FEATURES), ("edge_features", OF_EDGES))
    )
    if features is None:
        raise ArtifactError(f"{path} is damaged: it has no features (nodes, dim).")
    edges = found.get("edges")
    if edges is None or edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype != torch.int64:
        raise ArtifactError(f"{path} is damaged: it has no edges (count, 2).")
    if len(edges) and (int(edges.min()) < 0 or int(edges.max()) >= len(features)):
        raise ArtifactError(f"{path} is damaged: an edge refers to a node that does not exist.")
    if of_edges is not None and len(of_edges) != len(edges):
        raise ArtifactError(f"{path} is damaged: edge_features must have one row for each edge.")
    about = JsonObject(read_json(folder / NODES), str(folder / NODES))
    names, labels = (about.take(key, list, type(None)) for key in ("names", "labels"))
    for key, texts in (("names", names), ("labels", labels)):
        if texts is not None and ([type(text) for text in texts] != [str] * len(features)):
            raise ArtifactError(f"{folder / NODES} is damaged: {key} must have one text for each node.")
    if names is not None and len(set(names)) != len(names):
        raise ArtifactError(f"{folder / NODES} is damaged: two nodes have the same name.")
    skipped = about.take("skipped", int, least=0)
    return Graph(features, edges.numpy(), names, labels, skipped, of_edges)


def _finite(found: torch.Tensor | None, name: str, path: Path) -> NDArray[np.float32] | None:
    if found is None:
        return None
    if found.ndim != 2 or found.dtype != torch.float32 or not found.numel() or not found.isfinite().all():
        raise ArtifactError(f"{path} is damaged: {name} must be finite 32-bit numbers (count, dim).")
    return found.numpy()
