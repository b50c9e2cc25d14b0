"""Graphs in tables: CSV, TSV or Parquet files of edges and of nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saccade.data.cell import Cell, shown, text_of
from saccade.data.errors import BadRow, DataError
from saccade.data.readers.csv_rows import csv_rows
from saccade.data.readers.lines import numbered_lines, suffix
from saccade.data.readers.parquet import check_growth, open_table, records, row_batches
from saccade.fields.graph_data import LARGEST, SKIP_EDGES, Graph

Rows = list[tuple[int, list[Any]]]


def read_tables(edges: str, nodes: str, *, skip: bool) -> Graph:
    """Reads a graph from two tables; see `read_graph`."""
    names, features = _read_nodes(nodes)
    found, of_edges, skipped = _read_edges(edges, {name: place for place, name in enumerate(names)}, skip)
    return Graph(features, found, names, skipped=skipped, edge_features=of_edges)


def _read_nodes(path: str) -> tuple[list[str], NDArray[np.float32]]:
    lines: dict[str, int] = {}
    features: list[list[float]] = []
    header, rows = _table(path)
    for line, cells in rows:
        width = len(features[0]) + 1 if features else max(len(cells), 2)
        if len(cells) != width:
            wanted = f"{width} like the rows above" if features else "a name and at least one feature"
            raise BadRow(path, line, f"{len(cells)} columns instead of {wanted}", "Give every node all features.")
        name = text_of(cells[0], Cell(path, line, "name"))
        if name in lines:
            raise BadRow(path, line, f"the node {name!r:.60} is already on line {lines[name]}", "Remove one of them.")
        lines[name] = line
        names = header if len(header) == width else list(map(str, range(width)))
        features.append(_numbers(cells[1:], path, line, names[1:]))
    if not features:
        raise DataError(f"{path} has no nodes below its header.")
    return list(lines), np.asarray(features, dtype=np.float32)


def _read_edges(
    path: str, places: dict[str, int], skip: bool
) -> tuple[NDArray[np.int64], NDArray[np.float32] | None, int]:
    """The edges, their features, and how many edges were left out."""
    edges: list[tuple[int, int]] = []
    features: list[list[float]] = []
    skipped = 0
    header, rows = _table(path)
    if len(header) >= 2 and all(name in places for name in header[:2]):
        raise BadRow(path, 1, f"an edge from {header[0]!r:.40} to {header[1]!r:.40} instead of a header", "Add one.")
    for line, cells in rows:
        if len(cells) < 2:
            raise BadRow(path, line, "one column instead of two", "Write the two nodes of an edge.")
        if len(cells) != len(header):
            fix = "Give every edge all features."
            raise BadRow(path, line, f"{len(cells)} columns, but the header has {len(header)}", fix)
        ends = [text_of(cell, Cell(path, line, "node")) for cell in cells[:2]]
        unknown = next((name for name in ends if name not in places), None)
        if unknown is None:
            edges.append((places[ends[0]], places[ends[1]]))
            features.append(_numbers(cells[2:], path, line, header[2:]))
        elif skip:
            skipped += 1
        else:
            fix = f"Correct it, add the node, or leave such edges out ({SKIP_EDGES})."
            raise BadRow(path, line, f"there is no node {unknown!r:.60}", fix)
    wide = len(header) > 2 and len(edges) > 0
    return (
        np.asarray(edges, dtype=np.int64).reshape(-1, 2),
        np.asarray(features, dtype=np.float32) if wide else None,
        skipped,
    )


def _numbers(cells: list[Any], path: str, line: int, names: list[str]) -> list[float]:
    found = []
    for name, cell in zip(names, cells, strict=True):
        try:
            value = float(cell)
        except (TypeError, ValueError):
            value = float("nan")
        if not abs(value) <= LARGEST:  # nor if it is NaN
            problem = f"the column {name!r:.40} contains {shown(cell)}, which is not a finite number"
            raise BadRow(path, line, problem, "Correct or fill it in: every feature is a number.")
        found.append(value)
    return found


def _table(path: str) -> tuple[list[str], Rows]:
    """The header, and the rows that are not blank with their lines."""
    if suffix(path) == ".parquet":
        return _parquet(path)
    tabs = suffix(path) == ".tsv"
    found = []
    for line, row in numbered_lines(Path(path)) if tabs else csv_rows(Path(path)):
        if isinstance(row, BadRow):
            raise row
        cells = [cell.strip() for cell in (row.split("\t") if isinstance(row, str) else row)]
        if any(cells):
            found.append((line, cells))
    rows: Rows = [(line, list(cells)) for line, cells in found[1:]]
    return (found[0][1] if found else []), rows


def _parquet(path: str) -> tuple[list[str], Rows]:
    with open_table(path) as table:
        names = list(table.schema_arrow.names)
        check_growth(table.metadata, names, path)
        rows: Rows = []
        for batch in row_batches(table):
            for record in records(batch):
                line = len(rows) + 1
                if isinstance(record, str):
                    fix = "Write the file again from valid values."
                    raise BadRow(path, line, f"a value cannot be read ({record})", fix)
                rows.append((line, [record[name] for name in names]))
    return names, rows
