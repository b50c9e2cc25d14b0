"""Folders in the TU format: many small graphs with their labels."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from saccade.data.errors import BadRow, DataError
from saccade.data.readers.base import Reader, readers
from saccade.data.readers.columns import Record
from saccade.data.readers.files import stamp
from saccade.data.readers.lines import numbered_lines

EDGES, GRAPHS = "_A.txt", "_graph_indicator.txt"


def tu_name(folder: Any) -> str | None:
    """`MUTAG` for a folder that contains MUTAG_A.txt and MUTAG_graph_indicator.txt; None for other folders."""
    if not isinstance(folder, str) or not os.path.isdir(folder):
        return None
    names = {name.removesuffix(EDGES) for name in os.listdir(folder) if name.endswith(EDGES)}
    whole = [name for name in sorted(names) if os.path.isfile(os.path.join(folder, name + GRAPHS))]
    return whole[0] if len(whole) == 1 else None


@readers.register("tu")
class TU(Reader):
    """A folder in the format of the TU graph collection: the columns `graph` and `label`; the line is a graph's number.

    Of NAME_A.txt (edges), NAME_graph_indicator.txt (the graph of each node), NAME_graph_labels.txt,
    NAME_node_labels.txt, NAME_node_attributes.txt, NAME_edge_labels.txt and NAME_edge_attributes.txt, all but the first
    two may be missing.

    Reference:
        Morris et al. (2020), arXiv:2007.08663.
    """

    @classmethod
    def takes(cls, source: Any) -> bool:
        return tu_name(source) is not None

    def stamp(self) -> str:
        return " ".join(stamp(str(path)) for path in sorted(Path(self.name).glob(f"{tu_name(self.name)}_*.txt")))

    def rows(self) -> Iterator[tuple[int, Record | BadRow]]:
        of_nodes = [self._whole(cells[0], "graph_indicator", line) for line, cells in self._read("graph_indicator")]
        if of_nodes != sorted(of_nodes) or not of_nodes:
            raise DataError(f"{self._file('graph_indicator')} must list the graphs of all nodes in order.")
        count = of_nodes[-1]
        if count > len(of_nodes):
            raise DataError(f"{self._file('graph_indicator')} names graph {count}, but has {len(of_nodes)} nodes.")
        starts = [0]
        for number in range(1, count + 1):
            end = starts[-1]
            while end < len(of_nodes) and of_nodes[end] == number:
                end += 1
            starts.append(end)
        graphs: list[dict[str, Any]] = [{"nodes": end - start, "edges": []} for start, end in pairwise(starts)]
        columns = {"tags": "node_labels", "features": "node_attributes"}
        of_edges = {"edge_tags": "edge_labels", "edge_features": "edge_attributes"}
        for key, file in columns.items():
            values = self._values(file, len(of_nodes))
            for graph, (start, end) in zip(graphs, pairwise(starts), strict=True):
                if values is not None:
                    graph[key] = values[start:end]
        edges = list(self._read("A"))
        given = {key: self._values(file, len(edges)) for key, file in of_edges.items()}
        for key, of_each in given.items():
            for graph in graphs if of_each is not None else ():
                graph[key] = []
        for place, (line, cells) in enumerate(edges):
            if len(cells) != 2:
                raise BadRow(str(self._file("A")), line, f"{len(cells)} columns", "An edge is two nodes: 1, 2.")
            one, other = (self._whole(cell, "A", line) - 1 for cell in cells)
            if not (0 <= one < len(of_nodes) and 0 <= other < len(of_nodes)) or of_nodes[one] != of_nodes[other]:
                fix = f"Nodes are numbered from 1 to {len(of_nodes)}, and an edge stays within one graph."
                raise BadRow(str(self._file("A")), line, f"an edge from {one + 1} to {other + 1}", fix)
            number = of_nodes[one] - 1
            graphs[number]["edges"].append([one - starts[number], other - starts[number]])
            for key, of_each in given.items():
                if of_each is not None:
                    graphs[number][key].append(of_each[place])
        labels = self._values("graph_labels", count)
        for number, graph in enumerate(graphs, start=1):
            yield number, {"graph": graph} if labels is None else {"graph": graph, "label": labels[number - 1]}

    def _file(self, what: str) -> Path:
        return Path(self.name) / f"{tu_name(self.name)}_{what}.txt"

    def _read(self, what: str) -> Iterator[tuple[int, list[str]]]:
        for line, text in numbered_lines(self._file(what)):
            if isinstance(text, BadRow):
                raise text
            if text.strip():
                yield line, [cell.strip() for cell in text.split(",")]

    def _values(self, what: str, count: int) -> list[Any] | None:
        """Labels as text, attributes as lists of numbers; None without such a file."""
        if not self._file(what).is_file():
            return None
        found: list[Any] = []
        for line, cells in self._read(what):
            found.append(self._numbers(cells, what, line) if what.endswith("attributes") else ", ".join(cells))
        if len(found) != count:
            raise DataError(f"{self._file(what)} has {len(found)} lines instead of {count}.")
        return found

    def _numbers(self, cells: list[str], what: str, line: int) -> list[float]:
        try:
            return [float(cell) for cell in cells]
        except ValueError:
            raise BadRow(str(self._file(what)), line, "not numbers", "Separate numbers by commas.") from None

    def _whole(self, cell: str, what: str, line: int) -> int:
        if not cell.isdecimal() or len(cell) > 12 or int(cell) < 1:
            raise BadRow(
                str(self._file(what)), line, f"{cell!r:.40} is not a whole number of 1 or more", "Count from 1."
            )
        return int(cell)
