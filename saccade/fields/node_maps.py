"""Maps of what nodes attend to, and which neighbours decided."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from saccade.fields.graph_data import Graph
from saccade.fields.looking import Seen
from saccade.fields.neighbours import Around, Neighbours
from saccade.fields.node_looks import attending_layers, through_layers
from saccade.interpretation.explorer import Map, NodeAxis
from saccade.interpretation.recording import Trace
from saccade.layers.graph import DegreeBlock

DRAWN = 60
"""The maximum number of nodes for showing what the neighbours attend to; beyond it, only the node's own map."""

ALL = "all layers"
"""The name of the map that joins those of all layers."""


def node_axis(graph: Graph, nodes: NDArray[np.int64], centre: int) -> NodeAxis:
    """Some nodes, in ascending order, around one of them."""
    return NodeAxis(
        names=[graph.name(node) for node in nodes.tolist()],
        labels=None if graph.labels is None else [graph.labels[node] for node in nodes.tolist()],
        centre=int(np.searchsorted(nodes, centre)),
    )


def neighbour_maps(
    graph: Graph, neighbours: Neighbours, centre: int, around: Around, trace: Trace, end: str = ""
) -> list[Map]:
    """Each layer's attention from a node and, in a small graph, from all nodes that influence the answer; then the
    share of each node through all layers.

    A node n steps away influences it through all layers but the last n. Beyond that, the weights are meaningless, since
    some of the nodes they depend on are missing.

    Args:
        graph, neighbours: the whole graph.
        centre: the node.
        around: what the model read.
        trace: what it attended to.
        end: added to the names of the maps.
    """
    layers = attending_layers(trace, around.blocks())
    maps = []
    for number, (path, blocks) in enumerate(layers):
        reach = len(layers) - 1 - number if len(around.nodes) <= DRAWN else 0
        queries = np.flatnonzero(around.steps <= reach) if reach else np.searchsorted(around.nodes, [centre])
        read = neighbours.read_by(around.nodes[queries])[0]
        keys = np.searchsorted(around.nodes, np.union1d(read, centre))
        weights = torch.zeros(blocks[0][1].shape[1], len(queries), len(around.nodes))
        place_of = torch.full((len(around.nodes),), -1)
        place_of[torch.from_numpy(queries)] = torch.arange(len(queries))
        for block, of_block in blocks:
            row, column = (block.mask & (place_of[block.rows] >= 0).unsqueeze(1)).nonzero(as_tuple=True)
            weights[:, place_of[block.rows[row]], block.neighbours[row, column]] = of_block[row, :, column].T
        drawn = weights[:, :, torch.from_numpy(keys)]
        rows, columns = (node_axis(graph, around.nodes[places], centre) for places in (queries, keys))
        maps.append(Map(name=path + end, weights=drawn, queries=rows, keys=columns, layer=number))
    if len(layers) > 1:
        maps.append(_decided(graph, centre, around, layers, end))
    return maps


def _decided(
    graph: Graph, centre: int, around: Around, layers: list[tuple[str, list[tuple[DegreeBlock, Tensor]]]], end: str
) -> Map:
    """Which nodes decided, through all layers: those with the largest shares."""
    place = int(np.searchsorted(around.nodes, centre))
    share = through_layers(layers, place, len(around.nodes))
    best = share.argsort(descending=True)[:DRAWN]
    shown = np.union1d(best[share[best] > 0].numpy(), place)
    rows, columns = (node_axis(graph, around.nodes[places], centre) for places in (np.array([place]), shown))
    weights = share[torch.from_numpy(shown)][None, None]
    return Map(name=ALL + end, weights=weights, queries=rows, keys=columns, layer=len(layers))


def seen_neighbours(graph: Graph, places: NDArray[np.int64], around: Around, trace: Trace) -> list[Seen]:
    """The last layer's weights of the neighbours of each of these nodes; nothing without such a layer."""
    layers = attending_layers(trace, around.blocks())
    if not layers:
        return []
    found: dict[int, Seen] = {}
    for block, weights in layers[-1][1]:
        for row, node in enumerate(around.nodes[block.rows.numpy()].tolist()):
            near = around.nodes[block.neighbours[row][block.mask[row]].numpy()].tolist()
            found[node] = Seen([graph.name(each) for each in near], weights[row].mean(0)[: len(near)])
    return [found.get(place, Seen([graph.name(place)], torch.zeros(1))) for place in places.tolist()]
