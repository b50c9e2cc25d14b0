"""Graphs in files: NumPy archives, tables of edges and nodes, and the copy in a run folder."""

from __future__ import annotations

import json
import math
import zipfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from saccade.artifacts import ArtifactError, JsonObject, pack_tensors, read_json, read_tensors, write_file
from saccade.data.cell import Cell, text_of
from saccade.data.errors import BadRow, DataError
from saccade.data.readers.csv_rows import csv_rows
from saccade.data.readers.files import check_file
from saccade.data.readers.lines import numbered_lines, suffix

FILE, NODES = "graph.safetensors", "nodes.json"
MOST = 2**31
"""Numbers in a feature matrix: more would not fit into memory as a dense one."""

LARGEST = float(np.finfo(np.float32).max)
CSR = ("x_indptr", "x_indices", "x_data", "x_shape")
ARRAYS = ("edges", "x", *CSR, "labels")


class Graph(NamedTuple):
    """A graph whose nodes have features."""

    features: NDArray[np.float32]
    """(nodes, dim)."""
    edges: NDArray[np.int64]
    """(edges, 2): from, to."""
    names: list[str] | None = None
    """Of the nodes; None if they are numbers."""
    labels: list[str] | None = None
    """The class of each node, "" if unknown: to colour drawings, never an input of a model."""
    skipped: int = 0
    """How many edges to unknown nodes were left out."""


def read_graph(graph: str, nodes: str | None, *, skip: bool) -> Graph:
    """Reads a NumPy archive, or a table of edges and one of nodes.

    Args:
        graph: the archive, or the table of edges.
        nodes: the table of nodes, for a table of edges.
        skip: leave out edges to unknown nodes instead of raising `DataError`.
    """
    check_file(graph)
    if suffix(graph) == ".npz":
        if nodes is not None:
            raise DataError(f"{graph} already has the features of the nodes: remove nodes: {nodes}.")
        return _from_archive(graph, skip)
    if nodes is None:
        raise DataError(f"{graph} has only edges: name the file with the features of the nodes (nodes: nodes.csv).")
    check_file(nodes)
    names, features = _read_nodes(nodes)
    edges, skipped = _read_edges(graph, {name: place for place, name in enumerate(names)}, skip)
    return Graph(features, edges, names, skipped=skipped)


def _from_archive(path: str, skip: bool) -> Graph:
    found, names = _read_archive(path)
    for name in ("edges", *(() if "x" in found else CSR)):
        if name not in found:
            raise DataError(f"{path} has no array {name!r}. It has: {', '.join(names)[:200] or 'none'}.")
    features = _dense(found, path)
    wrong = np.argwhere(~np.isfinite(features))
    if len(wrong):
        node, column = wrong[0].tolist()
        raise DataError(
            f"{path}: feature {column} of node {node} is {features[node, column]}. Replace it with a finite number."
        )
    edges = found["edges"]
    if edges.ndim != 2 or edges.shape[1] != 2 or not np.issubdtype(edges.dtype, np.integer):
        hint = " Transpose them." if edges.ndim == 2 and edges.shape[0] == 2 else ""
        raise DataError(f"{path}: edges must be integers of shape (count, 2), got {edges.dtype} {edges.shape}.{hint}")
    outside = ((edges < 0) | (edges >= len(features))).any(1)
    if outside.any() and not skip:
        row = int(outside.argmax())
        raise DataError(
            f"{path}: row {row} of edges is {tuple(edges[row].tolist())}, but nodes are numbered from 0 to "
            f"{len(features) - 1}. Correct it, or set bad_edges: skip."
        )
    labels = _labels(found["labels"], len(features), path) if "labels" in found else None
    return Graph(features, edges[~outside].astype(np.int64), None, labels, int(outside.sum()))


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
        shape, _, kind = header(file)
        if math.prod(shape) * kind.itemsize > member.file_size:
            raise ValueError(f"{member.filename} announces {shape} numbers, more than it holds")
    with archive.open(member) as file:
        found: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
        return found


def _labels(found: NDArray[Any], count: int, path: str) -> list[str]:
    if found.shape != (count,) or found.dtype.kind not in "iuU":
        got = f"got {found.dtype} {found.shape}"
        raise DataError(f"{path}: labels must be one integer or string per node, shape ({count},), {got}.")
    return ["" if label == -1 else str(label) for label in found.tolist()]


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


def _read_nodes(path: str) -> tuple[list[str], NDArray[np.float32]]:
    lines: dict[str, int] = {}
    features: list[list[float]] = []
    _, rows = _table(path)
    for line, cells in rows:
        width = len(features[0]) + 1 if features else max(len(cells), 2)
        if len(cells) != width:
            wanted = f"{width} like the rows above" if features else "a name and at least one feature"
            raise BadRow(path, line, f"{len(cells)} columns instead of {wanted}", "Give every node all features.")
        name = text_of(cells[0], Cell(path, line, "name"))
        if name in lines:
            raise BadRow(path, line, f"the node {name!r:.60} is already on line {lines[name]}", "Remove one of them.")
        lines[name] = line
        features.append([_number(cell, path, line, column) for column, cell in enumerate(cells[1:], start=2)])
    if not features:
        raise DataError(f"{path} has no nodes below its header.")
    return list(lines), np.asarray(features, dtype=np.float32)


def _number(cell: str, path: str, line: int, column: int) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = float("nan")
    if not abs(value) <= LARGEST:  # nor if it is NaN
        raise BadRow(path, line, f"column {column} is {cell!r:.40}", "Features must be finite numbers.")
    return value


def _read_edges(path: str, places: dict[str, int], skip: bool) -> tuple[NDArray[np.int64], int]:
    edges: list[tuple[int, int]] = []
    skipped = 0
    header, rows = _table(path)
    if len(header) >= 2 and all(name in places for name in header[:2]):
        raise BadRow(path, 1, f"an edge from {header[0]!r:.40} to {header[1]!r:.40} instead of a header", "Add one.")
    for line, cells in rows:
        if len(cells) < 2:
            raise BadRow(path, line, "one column instead of two", "Write the two nodes of an edge.")
        unknown = next((name for name in cells[:2] if name not in places), None)
        if unknown is None:
            edges.append((places[cells[0]], places[cells[1]]))
        elif skip:
            skipped += 1
        else:
            fix = "Correct it, add the node, or set bad_edges: skip."
            raise BadRow(path, line, f"there is no node {unknown!r:.60}", fix)
    return np.asarray(edges, dtype=np.int64).reshape(-1, 2), skipped


def _table(path: str) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The header, and the rows that are not blank with their lines."""
    tabs = suffix(path) == ".tsv"
    found = []
    for line, row in numbered_lines(Path(path)) if tabs else csv_rows(Path(path)):
        if isinstance(row, BadRow):
            raise row
        cells = [cell.strip() for cell in (row.split("\t") if isinstance(row, str) else row)]
        if any(cells):
            found.append((line, cells))
    return (found[0][1] if found else []), found[1:]


def save_graph(graph: Graph, folder: Path) -> None:
    """Writes a graph into a run folder."""
    tensors = {"features": torch.from_numpy(graph.features), "edges": torch.from_numpy(graph.edges)}
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
    about = JsonObject(read_json(folder / NODES), str(folder / NODES))
    names, labels = (about.take(key, list, type(None)) for key in ("names", "labels"))
    for key, texts in (("names", names), ("labels", labels)):
        if texts is not None and ([type(text) for text in texts] != [str] * len(features)):
            raise ArtifactError(f"{folder / NODES} is damaged: {key} must have one text for each node.")
    if names is not None and len(set(names)) != len(names):
        raise ArtifactError(f"{folder / NODES} is damaged: two nodes have the same name.")
    skipped = about.take("skipped", int, least=0)
    return Graph(features.numpy(), edges.numpy(), names, labels, skipped)
