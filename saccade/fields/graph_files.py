"""Graphs in files: NumPy archives, tables of edges and nodes, and the copy in a run folder."""

from __future__ import annotations

import json
import math
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from saccade.artifacts import ArtifactError, JsonObject, pack_tensors, read_json, read_tensors, write_file
from saccade.data.errors import DataError
from saccade.data.readers.files import check_file
from saccade.data.readers.lines import suffix
from saccade.fields.graph_data import Graph, from_pyg, is_pyg, made_graph
from saccade.fields.graph_tables import read_tables

FILE, NODES = "graph.safetensors", "nodes.json"
MOST = 2**31
"""Numbers in a feature matrix: more would not fit into memory as a dense one."""

CSR = ("x_indptr", "x_indices", "x_data", "x_shape")
ARRAYS = ("edges", "x", *CSR, "labels", "edge_features")


def read_graph(graph: Any, nodes: str | None, *, skip: bool) -> Graph:
    """Reads a NumPy archive, a table of edges and one of nodes, or a graph in memory.

    Args:
        graph: the archive, the table of edges, or a `Data` of PyTorch Geometric.
        nodes: the table of nodes, for a table of edges.
        skip: leave out edges to unknown nodes instead of raising `DataError`.
    """
    if is_pyg(graph):
        return from_pyg(graph, skip=skip)
    check_file(graph)
    if suffix(graph) == ".npz":
        if nodes is not None:
            raise DataError(f"{graph} already has the features of the nodes: remove nodes: {nodes}.")
        return _from_archive(graph, skip)
    if nodes is None:
        raise DataError(f"{graph} has only edges: name the file with the features of the nodes (nodes: nodes.csv).")
    check_file(nodes)
    return read_tables(graph, nodes, skip=skip)


def write_graph(graph: Any, path: str | Path) -> None:
    """Writes a `Data` of PyTorch Geometric as a NumPy archive that `read_graph` reads."""
    found = from_pyg(graph)
    arrays: dict[str, NDArray[Any]] = {"edges": found.edges, "x": found.features}
    if found.edge_features is not None:
        arrays["edge_features"] = found.edge_features
    if found.labels is not None:
        arrays["labels"] = np.array(found.labels)
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]


def _from_archive(path: str, skip: bool) -> Graph:
    found, names = _read_archive(path)
    for name in ("edges", *(() if "x" in found else CSR)):
        if name not in found:
            raise DataError(f"{path} has no array {name!r}. It has: {', '.join(names)[:200] or 'none'}.")
    of_edges = found.get("edge_features")
    if of_edges is not None and (of_edges.ndim != 2 or not of_edges.shape[1] or of_edges.dtype.kind not in "biuf"):
        got = f"got {of_edges.dtype} {of_edges.shape}"
        raise DataError(f"{path}: edge_features must be real numbers of shape (edges, dim), {got}.")
    features, labels = _dense(found, path), found.get("labels")
    return made_graph(features, found["edges"], path, skip=skip, edge_features=of_edges, labels=labels)


def _read_archive(path: str) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """The arrays of a NumPy archive that make a graph, and the names of all; memory is allocated for sound ones."""
    try:
        with open(path, "rb") as file:
            if file.read(len(np.lib.format.MAGIC_PREFIX)) == np.lib.format.MAGIC_PREFIX:
                raise ValueError("it is a single array")
        with zipfile.ZipFile(path) as archive:
            members = {about.filename.removesuffix(".npy"): about for about in archive.infolist()}
            return {name: _array(archive, members[name]) for name in ARRAYS if name in members}, list(members)
    except (ValueError, OSError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        fix = "Write it with np.savez, without arrays of objects"
        raise DataError(f"{path} is not a NumPy archive of plain arrays ({error}). {fix}.") from None
    except MemoryError:
        raise DataError(f"{path} holds more than fits into the memory of this machine.") from None


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    if member.flag_bits & 1 or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{member.filename} is encrypted or compressed in another way than NumPy's")
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
        if header is None:
            raise ValueError(f"{member.filename} has the format {version}")
        try:
            shape, _, kind = header(file)
        except Exception as error:  # NumPy parses Python's syntax here, and lets any error of the parser through
            raise ValueError(f"the header of {member.filename} is damaged") from error
        if any(not 0 <= size < 2**62 for size in shape) or math.prod(shape) * kind.itemsize > member.file_size:
            raise ValueError(f"{member.filename} announces {shape} numbers, more than it holds")
    with archive.open(member) as file:
        found: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
        return found


def _dense(found: dict[str, NDArray[Any]], path: str) -> NDArray[np.float32]:
    if "x" in found:
        x = found["x"]
        if x.ndim != 2 or not x.size or x.dtype.kind not in "biuf":
            raise DataError(f"{path}: x must be real numbers of shape (nodes, dim), got {x.dtype} {x.shape}.")
        return x.astype(np.float32)
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
    """Writes a graph into a run folder."""
    tensors = {"features": torch.from_numpy(graph.features), "edges": torch.from_numpy(graph.edges)}
    if graph.edge_features is not None:
        tensors["edge_features"] = torch.from_numpy(graph.edge_features)
    (folder / FILE).write_bytes(pack_tensors(tensors))
    about = {"names": graph.names, "labels": graph.labels, "skipped": graph.skipped}
    write_file(folder / NODES, json.dumps(about, ensure_ascii=False))


def load_graph(folder: Path) -> Graph:
    """Reads what `save_graph` wrote."""
    path = folder / FILE
    found = read_tensors(path)
    features, edges = found.get("features"), found.get("edges")
    if features is None or features.ndim != 2 or features.dtype != torch.float32 or not features.numel():
        raise ArtifactError(f"{path} is damaged: it has no features (nodes, dim).")
    if not features.isfinite().all():
        raise ArtifactError(f"{path} is damaged: some features are not finite.")
    if edges is None or edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype != torch.int64:
        raise ArtifactError(f"{path} is damaged: it has no edges (count, 2).")
    if len(edges) and (int(edges.min()) < 0 or int(edges.max()) >= len(features)):
        raise ArtifactError(f"{path} is damaged: an edge refers to a node that does not exist.")
    of_edges = found.get("edge_features")
    if of_edges is not None and (
        of_edges.ndim != 2
        or len(of_edges) != len(edges)
        or of_edges.dtype != torch.float32
        or not of_edges.numel()
        or not of_edges.isfinite().all()
    ):
        raise ArtifactError(f"{path} is damaged: edge_features must be finite, one row for each edge.")
    about = JsonObject(read_json(folder / NODES), str(folder / NODES))
    names, labels = (about.take(key, list, type(None)) for key in ("names", "labels"))
    for key, texts in (("names", names), ("labels", labels)):
        if texts is not None and ([type(text) for text in texts] != [str] * len(features)):
            raise ArtifactError(f"{folder / NODES} is damaged: {key} must have one text for each node.")
    if names is not None and len(set(names)) != len(names):
        raise ArtifactError(f"{folder / NODES} is damaged: two nodes have the same name.")
    skipped = about.take("skipped", int, least=0)
    of_each = None if of_edges is None else of_edges.numpy()
    return Graph(features.numpy(), edges.numpy(), names, labels, skipped, of_each)
