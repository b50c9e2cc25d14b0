"""Small graphs in cells: JSON objects, or PyTorch Geometric's `Data`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from saccade.data.cell import Cell, shown, text_of
from saccade.data.errors import DataError
from saccade.fields.graph_data import LARGEST, GeometricData, from_pyg

TAGS, NUMBERS = ("tags", "edge_tags", "names"), ("features", "edge_features")
KNOWN = ("nodes", "edges", *TAGS, *NUMBERS)
FIX = 'Write it as {"edges": [[0, 1], [1, 2]], "tags": ["C", "O", "C"]}.'
MOST_NODES = 1_000_000
"""Of a small graph."""

MOST_BARE = 10_000
"""The maximum number of nodes without edges or features: a few bytes must not become a huge graph."""


def read_cell(raw: Any, cell: Cell) -> dict[str, Any]:
    """A graph as plain lists: `nodes` (their number), `edges`, and those of tags, features and names that are given."""
    if isinstance(raw, GeometricData):
        return _from_pyg(raw, cell)
    if isinstance(raw, str):
        try:
            raw = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise cell.bad(f"the {cell.role} is not a graph in JSON ({str(error)[:80]})", FIX) from None
    if not isinstance(raw, Mapping) or "edges" not in raw:
        raise cell.bad(f"the {cell.role} is not a graph but {shown(raw)}", FIX)
    strange = next((name for name in raw if name not in KNOWN), None)
    if strange is not None:
        raise cell.bad(f"the {cell.role} has an unknown key {shown(strange)}", f"Known are: {', '.join(KNOWN)}.")
    edges = [_edge(edge, place, cell) for place, edge in enumerate(_list(raw, "edges", cell))]
    value: dict[str, Any] = {"edges": edges}
    for name in TAGS:
        if raw.get(name) is not None:
            value[name] = [text_of(each, cell, may_be_empty=True) for each in _list(raw, name, cell)]
    for name in NUMBERS:
        if raw.get(name) is not None:
            value[name] = _numbers(_list(raw, name, cell), name, cell)
    return _counted(value, raw.get("nodes"), cell)


def _counted(value: dict[str, Any], nodes: Any, cell: Cell) -> dict[str, Any]:
    counts: dict[str, int] = {name: len(value[name]) for name in ("tags", "features", "names") if name in value}
    if nodes is not None:
        if type(nodes) is not int or nodes < 0:
            raise cell.bad(f"nodes is {shown(nodes)}", "Give the number of nodes.")
        counts["nodes"] = nodes
    largest = max((end for edge in value["edges"] for end in edge), default=-1)
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{count} {name}" for name, count in counts.items())
        raise cell.bad(f"the {cell.role} has {listed}", "Give one of each for every node.")
    value["nodes"] = next(iter(counts.values()), largest + 1)
    if not value["nodes"]:
        raise cell.bad(f"the {cell.role} has no nodes", "Leave it out, or skip such rows with --data.bad_rows skip.")
    if value["nodes"] > MOST_NODES:
        fix = "Number them from 0 without gaps, or use the field `node` for one large graph."
        raise cell.bad(f"the {cell.role} has more than {MOST_NODES:,} nodes", fix)
    if not set(counts) - {"nodes"} and value["nodes"] > MOST_BARE:
        bare = value["nodes"] - len({end for edge in value["edges"] for end in edge})
        if bare > MOST_BARE:
            problem = f"{bare:,} of the {value['nodes']:,} nodes of the {cell.role} have neither edges nor features"
            raise cell.bad(problem, "Number nodes from 0 without gaps, or give them tags or features.")
    if largest >= value["nodes"]:
        raise cell.bad(f"an edge leads to node {largest}, but there are {value['nodes']} nodes", "Number them from 0.")
    for name in ("edge_tags", "edge_features"):
        if name in value and len(value[name]) != len(value["edges"]):
            problem = f"the {cell.role} has {len(value['edges'])} edges, but {len(value[name])} {name}"
            raise cell.bad(problem, "Give one for each edge.")
    if "names" in value and len(set(value["names"])) != len(value["names"]):
        raise cell.bad(f"two nodes of the {cell.role} have the same name", "Give each a name of its own.")
    return value


def _edge(edge: Any, place: int, cell: Cell) -> list[int]:
    fits = isinstance(edge, Sequence) and len(edge) == 2 and all(type(end) is int and end >= 0 for end in edge)
    if not fits:
        raise cell.bad(f"edge {place} is {shown(edge)}", "Give the numbers of two nodes, counted from 0.")
    return list(edge)


def _list(raw: Mapping[str, Any], name: str, cell: Cell) -> Sequence[Any]:
    found = raw[name]
    if isinstance(found, str) or not isinstance(found, Sequence):
        raise cell.bad(f"{name} is {shown(found)}", "Give a list.")
    return found


def _numbers(rows: Sequence[Any], name: str, cell: Cell) -> list[list[float]]:
    found = []
    for place, row in enumerate(rows):
        numbers = row if isinstance(row, Sequence) and not isinstance(row, str) else [row]
        if any(type(n) not in (int, float) or not abs(n) <= LARGEST for n in numbers):
            raise cell.bad(f"{name} {place} is {shown(row)}", "Give finite numbers.")
        found.append([float(n) for n in numbers])
    if len({len(row) for row in found}) > 1 or (found and not found[0]):
        raise cell.bad(f"{name} have different sizes, or none", "Give the same number of them each time.")
    return found


def _from_pyg(data: Any, cell: Cell) -> dict[str, Any]:
    try:
        graph = from_pyg(data, where=f"the {cell.role}")
    except DataError as error:
        raise cell.bad(str(error).rstrip("."), "Correct it.") from None
    value: dict[str, Any] = {"nodes": len(graph.features), "edges": graph.edges.tolist()}
    if data.x is not None:
        value["features"] = graph.features.tolist()
    if graph.edge_features is not None:
        value["edge_features"] = graph.edge_features.tolist()
    return _counted(value, value["nodes"], cell)
