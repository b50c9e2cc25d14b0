"""The graph layers of PyTorch Geometric."""

from __future__ import annotations

from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from saccade.interpretation.recording.recipes import Captured, Recipe, Shape, Tensors


@dataclass(frozen=True)
class Edges(Recipe):
    """A weight for each edge, normalised over the edges into a node.

    Queries are the nodes that edges lead to, keys the nodes that they come from. Parallel edges add up; without an
    edge the weight is zero.

    Tensors:
        weights (edges, heads), targets, sources (edges,).
    """

    num_targets: int
    num_sources: int

    def shape(self, tensors: Tensors) -> Shape:
        return 1, tensors["weights"].shape[1], self.num_targets, self.num_sources

    def sizes(self, tensors: Tensors) -> None:
        return None

    def compute(self, tensors: Tensors, rows: slice) -> Tensor:
        weights, targets, sources = tensors["weights"], tensors["targets"], tensors["sources"]
        first, last, _ = rows.indices(self.num_targets)
        inside = (targets >= first) & (targets < last)
        places = (targets[inside] - first) * self.num_sources + sources[inside]
        flat = weights.new_zeros(weights.shape[1], (last - first) * self.num_sources)
        flat.index_add_(1, places, weights[inside].T.contiguous())
        return flat.view(1, -1, last - first, self.num_sources)

    def choose(self, tensors: Tensors, heads: list[int]) -> Captured:
        return Captured(self, {**tensors, "weights": tensors["weights"][:, heads]})


def edge_softmax(weights: Tensor, index: Tensor, num_nodes: int | None, dim: int, frame: FrameType | None) -> Captured:
    """A call of `torch_geometric.utils.softmax`; `frame` is that of the layer's `forward`, which knows the edges.

    Pooling has no edges: each item is a separate key.
    """
    weights = weights.movedim(dim, 0).flatten(1) if weights.dim() > 1 else weights.unsqueeze(1)
    count = weights.shape[0]
    targets = num_nodes if num_nodes is not None else int(index.max()) + 1 if count else 0
    variables: dict[str, Any] = {} if frame is None else frame.f_locals
    edges, x = variables.get("edge_index"), variables.get("x")
    if not isinstance(edges, Tensor) or edges.layout != torch.strided or tuple(edges.shape) != (2, count):
        sources, num_sources = torch.arange(count, device=index.device), count
    else:
        sources = edges[0] if torch.equal(edges[1], index) else edges[1]  # flow may be target_to_source
        seen = int(sources.max()) + 1 if count else 0
        bipartite = isinstance(x, list | tuple) and isinstance(x[0], Tensor)
        num_sources = x[0].shape[0] if bipartite and x is not None else max(seen, targets)
    return Captured(Edges(targets, num_sources), {"weights": weights, "targets": index, "sources": sources})
