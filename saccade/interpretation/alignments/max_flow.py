"""Maximum flow."""

from __future__ import annotations

from collections.abc import Iterable

TINY = 1e-12
"""Capacities below this count as used up: they are rounding errors."""


class FlowGraph:
    """A directed graph with capacities, for repeated maximum-flow queries between nodes.

    Reference:
        Dinic (1970): augments along all shortest paths at once, in at most as many rounds as there are nodes.

    Args:
        nodes: the number of nodes, which are numbered from 0.
        edges: (from, to, capacity).
    """

    def __init__(self, nodes: int, edges: Iterable[tuple[int, int, float]]) -> None:
        self._leaving: list[list[int]] = [[] for _ in range(nodes)]  # numbers of edges
        self._head: list[int] = []
        self._capacity: list[float] = []
        for start, end, capacity in edges:  # edge e and its reverse e ^ 1
            self._leaving[start].append(len(self._head))
            self._leaving[end].append(len(self._head) + 1)
            self._head += [end, start]
            self._capacity += [float(capacity), 0.0]

    def max_flow(self, source: int, sink: int) -> float:
        """The maximum flow from one node to another, which equals the capacity of the minimum cut."""
        room = list(self._capacity)
        total = 0.0
        while True:
            depth = self._depths(source, sink, room)
            if depth[sink] < 0:
                return total
            total += self._augment(source, sink, room, depth)

    def _depths(self, source: int, sink: int, room: list[float]) -> list[int]:
        """The number of steps from the source to each node along edges with spare capacity, -1 if unreachable."""
        depth = [-1] * len(self._leaving)
        depth[source] = 0
        reached = [source]
        for node in reached:
            if node == sink:
                break
            for edge in self._leaving[node]:
                end = self._head[edge]
                if room[edge] > TINY and depth[end] < 0:
                    depth[end] = depth[node] + 1
                    reached.append(end)
        return depth

    def _augment(self, source: int, sink: int, room: list[float], depth: list[int]) -> float:
        """Saturates every path whose edges each lead one step deeper; returns the added flow."""
        tried = [0] * len(self._leaving)  # per node: edges before this index are exhausted
        path: list[int] = []
        node, total = source, 0.0
        while True:
            if node == sink:
                least = min(room[edge] for edge in path)
                total += least
                for edge in path:
                    room[edge] -= least
                    room[edge ^ 1] += least
                full = next(place for place, edge in enumerate(path) if room[edge] <= TINY)
                node = self._head[path[full] ^ 1]
                del path[full:]
            elif tried[node] < len(self._leaving[node]):
                edge = self._leaving[node][tried[node]]
                if room[edge] > TINY and depth[self._head[edge]] == depth[node] + 1:
                    path.append(edge)
                    node = self._head[edge]
                else:
                    tried[node] += 1
            elif path:
                node = self._head[path.pop() ^ 1]
                tried[node] += 1
            else:
                return total
