"""Which nodes of a graph attend to which, and the subgraph that influences some nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from saccade.fields.base import Padded
from saccade.fields.graph_data import Graph
from saccade.layers.graph import DegreeBlock, degree_blocks

Numbers = NDArray[np.int64]


class Around(NamedTuple):
    """The subgraph that influences a batch of nodes."""

    nodes: Numbers
    """(found,): their numbers in the whole graph, in ascending order."""
    steps: Numbers
    """(found,): how far each is from the batch."""
    tensors: Padded
    """features, starts, neighbours and edges if any, by position in `nodes`; outermost nodes have no neighbours."""

    def blocks(self) -> list[DegreeBlock]:
        """The blocks in which a model reads it."""
        return degree_blocks(self.tensors["starts"], self.tensors["neighbours"])


class Neighbours:
    """The nodes that each node of a graph attends to.

    Args:
        graph: with its edges as they were given; edges that are given twice count once, with the features of the first.
        directed: a node attends only to nodes that have an edge to it; otherwise edges go both ways.
        self_loops: a node also attends to itself, by an edge whose features are zeros.
        row_normalise: divide the features of a node by the sum of their absolute values.
    """

    def __init__(self, graph: Graph, *, directed: bool, self_loops: bool, row_normalise: bool = False) -> None:
        self.count = count = len(graph.features)
        numbers = np.arange(len(graph.edges))
        edges = graph.edges if directed else np.concatenate([graph.edges, graph.edges[:, ::-1]])
        numbers = numbers if directed else np.concatenate([numbers, numbers])
        if self_loops:
            loops = np.arange(count)
            edges = np.concatenate([edges, np.stack([loops, loops], axis=1)])
            numbers = np.concatenate([numbers, np.full(count, len(graph.edges))])
        # Sorted by the node that attends, without duplicates.
        codes, first = np.unique(edges[:, 1] * count + edges[:, 0], return_index=True)
        self.starts = np.searchsorted(codes, np.arange(count + 1) * count)
        self.nodes = codes % max(count, 1)
        self._numbers = numbers[first]
        self._features, self._of_edges, self._row_normalise = graph.features, graph.edge_features, row_normalise

    def features(self, nodes: Numbers | None = None) -> torch.Tensor:
        """(nodes, dim): of these nodes, or of all."""
        some = np.array(self._features) if nodes is None else self._features[nodes]
        found: NDArray[np.float32] = some.astype(np.float32, copy=False)
        if self._row_normalise:
            found = found / np.maximum(np.abs(found).sum(1, keepdims=True), 1e-12, dtype=np.float32)
        return torch.from_numpy(found)

    def edge_features(self, places: Numbers | None = None) -> torch.Tensor | None:
        """(edges, edge_dim): of these edges, or of all."""
        if self._of_edges is None:
            return None
        numbers = self._numbers if places is None else self._numbers[places]
        loops = numbers == len(self._of_edges)
        found = np.zeros((len(numbers), self._of_edges.shape[1]), dtype=np.float32)
        found[~loops] = self._of_edges[numbers[~loops]]
        return torch.from_numpy(found)

    def read_by(self, nodes: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """The neighbours of these nodes, one node after another, the edges to them, and how many each node has."""
        starts = self.starts[nodes]
        degrees = self.starts[nodes + 1] - starts
        places = np.repeat(starts - degrees.cumsum() + degrees, degrees)
        places += np.arange(len(places))
        return self.nodes[places], places, degrees

    def around(
        self,
        centres: Numbers,
        hops: int,
        *,
        sample: int | None = None,
        generator: torch.Generator | None = None,
        among: NDArray[np.bool_] | None = None,
        without: Numbers | None = None,
    ) -> Around:
        """The nodes within this many steps.

        Args:
            centres: the nodes of a batch, in ascending order.
            hops: how many steps the model sees.
            sample: read at most this many neighbours of each node, drawn at random; all by default.
            generator: for these draws.
            among: (nodes,), True for the nodes that may be read; all by default.
            without: (pairs, 2), edges that are left out, in both directions.
        """
        far = hops + 1
        steps = np.full(self.count, far)
        steps[centres] = 0
        reached, parts = centres, []
        hidden = None
        if without is not None:
            hidden = np.concatenate([without @ [self.count, 1], without @ [1, self.count]])
        for step in range(1, far):
            near, places, degrees = self.read_by(reached)
            rows = np.repeat(reached, degrees)
            keep = np.ones(len(rows), dtype=bool)
            if among is not None:
                keep &= among[near] | (near == rows)
            if hidden is not None:
                keep &= ~np.isin(rows * self.count + near, hidden) | (near == rows)
            if sample is not None:
                keep = _drawn(rows, near, keep, sample, generator)
            rows, near, places = rows[keep], near[keep], places[keep]
            parts.append((rows, near, places))
            reached = np.unique(near[steps[near] == far])
            if not len(reached):  # whatever `hops` says
                break
            steps[reached] = step
        nodes = np.flatnonzero(steps < far)
        rows, near, places = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.argsort(rows, kind="stable")
        starts = np.searchsorted(rows[order], nodes)
        tensors = {
            "features": self.features(nodes),
            "starts": torch.from_numpy(np.append(starts, len(rows))),
            "neighbours": torch.from_numpy(np.searchsorted(nodes, near[order])),
        }
        of_edges = self.edge_features(places[order])
        if of_edges is not None:
            tensors["edges"] = of_edges
        return Around(nodes, steps[nodes], tensors)


def _drawn(
    rows: Numbers, near: Numbers, keep: NDArray[np.bool_], most: int, generator: torch.Generator | None
) -> NDArray[np.bool_]:
    """Draws at most this many of each row's allowed edges, always including its self-loop."""
    chance = torch.rand(len(rows), generator=generator).numpy()
    chance[near == rows] = -1.0
    chance[~keep] = 2.0
    order = np.lexsort((chance, rows))
    first = np.searchsorted(rows[order], rows[order])  # where the row begins
    drawn = np.zeros_like(keep)
    drawn[order[np.arange(len(rows)) - first < most]] = True
    return drawn & keep
