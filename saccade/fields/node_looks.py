"""The attention of a model to the neighbours of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from saccade.fields.looking import Look
from saccade.interpretation.recording import Trace
from saccade.layers.graph import DegreeBlock


@dataclass(frozen=True)
class NodeLook(Look):
    """The attention of a layer that reads a whole graph block by block."""

    nodes: int = 0
    """Of the graph."""

    rows: tuple[Tensor, ...] = ()
    """The nodes of each block."""

    def weights(self, trace: Trace, count: int, values: Tensor | None = None) -> Tensor:
        """(count, degree): of the neighbours of each of these nodes, padded at the end."""
        assert values is not None
        calls = [call.weights.float().mean(1)[:, 0] for call in trace.calls if call.path == self.path]
        degree = max(each.shape[1] for each in calls)
        whole = calls[0].new_zeros(self.nodes, degree)
        for rows, each in zip(self.rows, calls, strict=True):
            whole = whole.index_copy(0, rows, F.pad(each, (0, degree - each.shape[1])))
        return whole[values]


def attending_layers(trace: Trace, blocks: Sequence[DegreeBlock]) -> list[tuple[str, list[tuple[DegreeBlock, Tensor]]]]:
    """The name of each layer that attends block by block, with its blocks and their weights (rows, heads, degree)."""
    shapes = [(block.mask.shape[0], 1, block.mask.shape[1]) for block in blocks]
    layers = []
    for path in trace.paths:
        calls = [call for call in trace.calls if call.path == path]
        if blocks and [(call.shape[0], *call.shape[2:]) for call in calls] == shapes:
            weights = [call.weights.float().cpu()[:, :, 0] for call in calls]
            layers.append((path, list(zip(blocks, weights, strict=True))))
    return layers


def through_layers(layers: Sequence[tuple[str, list[tuple[DegreeBlock, Tensor]]]], centre: int, nodes: int) -> Tensor:
    """(nodes,): how much of each node's features reaches one node, along all paths through the layers.

    A path counts with the product of its weights, averaged over heads; the sum over all paths is 1.
    """
    share = F.one_hot(torch.tensor(centre), nodes).float()
    for _, blocks in reversed(layers):
        before = torch.zeros(nodes)
        for block, weights in blocks:
            part = share[block.rows].unsqueeze(1) * weights.mean(1) * block.mask
            before.index_add_(0, block.neighbours.flatten(), part.flatten())
        share = before
    return share
