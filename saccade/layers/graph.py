"""Attention over the neighbours of each node of a graph."""

from __future__ import annotations

from functools import cached_property, partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.attention import Attention
from saccade.kernels import native
from saccade.kernels.graph import nonzero_rows, read_neighbours
from saccade.kernels.modes import exporting
from saccade.kernels.private_torch import hooked
from saccade.kernels.segments import check_starts, segment_weights
from saccade.layers.choices import make_score, make_selection
from saccade.scores import Score
from saccade.selections import Selection

SPARSE = 8
"""Features with fewer than one non-zero value in this many are projected as a sparse matrix."""


class DegreeBlock(NamedTuple):
    """Nodes with similar numbers of neighbours."""

    rows: Tensor
    """(rows,): the nodes."""
    neighbours: Tensor
    """(rows, degree): the neighbours of each, padded at the end."""
    mask: Tensor
    """bool (rows, degree), True = real."""
    edges: Tensor
    """(rows, degree): the numbers of the edges to them."""


def degree_blocks(starts: Tensor, neighbours: Tensor) -> list[DegreeBlock]:
    """Groups the nodes of a graph by degree: 1, 2, 3 to 4, 5 to 8, and so on. At most half of a block is padding.

    Nodes without neighbours are in no block.

    Args:
        starts: (nodes + 1,): where the neighbours of each node begin, and where the last ones end.
        neighbours: (edges,): the neighbours of all nodes, one node after another.
    """
    degrees = starts.diff()
    blocks, least, most = [], 0, 1
    largest = int(degrees.max()) if len(degrees) else 0
    while least < largest:
        rows = ((degrees > least) & (degrees <= most)).nonzero().squeeze(1)
        if len(rows):
            places = torch.arange(min(most, largest), device=starts.device)
            mask = places < degrees[rows].unsqueeze(1)
            edges = torch.where(mask, starts[rows].unsqueeze(1) + places, 0)
            blocks.append(DegreeBlock(rows, torch.where(mask, neighbours[edges], 0), mask, edges))
        least, most = most, 2 * most
    return blocks


class Neighbourhoods:
    """Which nodes each node of a graph attends to.

    Args:
        starts: int64 (nodes + 1,): the neighbours of node i are neighbours[starts[i]:starts[i + 1]].
        neighbours: int64 (edges,).
        edges: (edges, edge_dim), the features of the edges to them; None if they have none.
        blocks: `degree_blocks`, of a graph that is part of a model; the rest is then not read.
    """

    def __init__(
        self,
        starts: Tensor,
        neighbours: Tensor,
        edges: Tensor | None = None,
        *,
        blocks: list[DegreeBlock] | None = None,
    ) -> None:
        self.starts, self.neighbours, self.edges = starts.contiguous(), neighbours.contiguous(), edges
        self.by_blocks = blocks is not None
        self._checked: int | None = None
        if blocks is not None:
            self.blocks = blocks
        elif edges is not None and len(edges) != len(neighbours):
            raise ValueError(f"{len(neighbours)} edges need as many features, got {tuple(edges.shape)}.")

    @cached_property
    def blocks(self) -> list[DegreeBlock]:
        """The nodes by degree: the form in which attention without a kernel reads them."""
        return degree_blocks(self.starts, self.neighbours)

    def check(self, nodes: int) -> None:
        """Raises `ValueError` unless these are neighbourhoods of this many nodes: kernels address memory by them."""
        if self._checked == nodes:
            return
        check_starts(self.starts, len(self.neighbours))
        if len(self.starts) != nodes + 1:
            raise ValueError(f"{nodes} nodes need {nodes + 1} starts, got {len(self.starts)}.")
        near = self.neighbours
        if near.dim() != 1 or near.dtype != torch.long or not near.is_cpu:
            raise ValueError(
                f"neighbours must be int64 (edges,), got {near.dtype} {tuple(near.shape)} on {near.device}."
            )
        least, most = (int(each) for each in near.aminmax()) if len(near) else (0, -1)
        if least < 0 or most >= nodes:
            raise ValueError(f"neighbours must be from 0 to {nodes - 1}, got {least if least < 0 else most}.")
        self._checked = nodes


class GraphAttention(nn.Module):
    r"""Lets each node attend to its neighbours, with several heads.

    .. math:: z_i = W h_i, \qquad h'_i = \mathrm{attention}(z_i, \{z_j + U e_{ij} : j \in N(i)\}, \{z_j\}) + V h_i

    Edges without features have no U e_ij, and without `skip` there is no V h_i. A node without neighbours reads zeros.
    The GAT and GATv2 scores with softmax, sparsemax or entmax-1.5 use kernels that do not copy the features for each
    edge; any other score and selection works too.

    Shapes:
        features (nodes, input_dim), near over the same nodes -> (nodes, num_heads * head_dim), or (nodes, head_dim)
        with `average`.

    Reference:
        Veličković et al. (2018), arXiv:1710.10903, equations 3 to 6.

    Args:
        input_dim: features of a node.
        head_dim: features of a head.
        num_heads: how many heads there are.
        score, selection: of the attention, by short name or with arguments of their own; the paper uses gat and
            softmax.
        average: average the heads instead of concatenating them, as in the paper's last layer.
        separate: project the node that attends by a matrix of its own, as GATv2 may; by default both sides share W.
        edge_dim: features of an edge; None if edges have none.
        skip: add a projection of the node's own features to what it read.
        dropout: of the features and of the attention weights.
    """

    def __init__(
        self,
        *,
        input_dim: int,
        head_dim: int,
        num_heads: int,
        score: str | Score | partial[Score] = "gat",
        selection: str | Selection | partial[Selection] = "softmax",
        average: bool = False,
        separate: bool = False,
        edge_dim: int | None = None,
        skip: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        sizes = dict.fromkeys(("dim", "query_dim", "key_dim", "hidden_dim"), head_dim) | {"num_heads": num_heads}
        size = num_heads * head_dim
        self.proj = nn.Linear(input_dim, size, bias=False)
        self.query_proj = nn.Linear(input_dim, size, bias=False) if separate else None
        self.edge_proj = None if edge_dim is None else nn.Linear(edge_dim, size, bias=False)
        self.skip_proj = nn.Linear(input_dim, head_dim if average else size, bias=False) if skip else None
        self.attention = Attention(
            score=make_score(score, **sizes), selection=make_selection(selection, **sizes), dropout=dropout
        )
        self.bias = nn.Parameter(torch.zeros(head_dim if average else size))
        self.num_heads = num_heads
        self.average = average
        self.dropout = dropout
        for each in (self.proj, self.query_proj, self.edge_proj, self.skip_proj):
            if each is not None:
                nn.init.xavier_uniform_(each.weight)

    def forward(self, features: Tensor, near: Neighbourhoods) -> Tensor:
        projections = [each for each in (self.proj, self.query_proj, self.skip_proj) if each is not None]
        projected = self._project(features, projections)
        keys = projected[0].unflatten(1, (self.num_heads, -1))
        queries = keys if self.query_proj is None else projected[1].unflatten(1, (self.num_heads, -1))
        edges = None
        if self.edge_proj is not None:
            if near.edges is None:
                raise ValueError("this layer reads features of edges (edge_dim), but the graph's edges have none.")
            edges = self.edge_proj(near.edges).unflatten(1, (self.num_heads, -1))
        read = self._read_edges(queries, keys, edges, near)
        if read is None:
            read = self._read_blocks(queries, keys, edges, near)
        read = (read.mean(1) if self.average else read.flatten(1)) + self.bias
        return read if self.skip_proj is None else read + projected[-1]

    def _project(self, features: Tensor, projections: list[nn.Linear]) -> list[Tensor]:
        """The features, dropped alike for each of them, after each of these projections."""
        weight = torch.cat([each.weight for each in projections]) if len(projections) > 1 else projections[0].weight
        projected = _project_sparse(features, weight, self.dropout if self.training else 0.0)
        if projected is None:
            projected = F.linear(F.dropout(features, self.dropout, self.training), weight)
        return list(projected.split([each.out_features for each in projections], dim=1))

    def _read_edges(self, queries: Tensor, keys: Tensor, edges: Tensor | None, near: Neighbourhoods) -> Tensor | None:
        """Reads with kernels that follow the edges; None if there are none, or if the weights are needed."""
        attention = self.attention
        mapping = attention.selection.segment_mapping
        if mapping is None or not attention.aggregation.weighted_sum or not native.usable(queries, keys):
            return None
        if near.by_blocks or attention.watched() or hooked(attention):
            return None
        near.check(len(keys))
        scores = attention.score.along(queries, keys, edges, near.starts, near.neighbours)
        if scores is None:
            return None
        weights = segment_weights(scores, near.starts, mapping)
        dropped = F.dropout(weights, attention.dropout, attention.training)
        return read_neighbours(dropped, keys, near.starts, near.neighbours)

    def _read_blocks(self, queries: Tensor, keys: Tensor, edges: Tensor | None, near: Neighbourhoods) -> Tensor:
        """The reference definition: attention of each node over its neighbours, for nodes of similar degree at once."""
        read = torch.zeros_like(keys)
        for rows, neighbours, mask, numbers in near.blocks:
            values = keys[neighbours].transpose(1, 2)  # (rows, heads, degree, head_dim)
            found = values if edges is None else values + edges[numbers].transpose(1, 2)
            context = self.attention(queries[rows].unsqueeze(2), found, values, mask=mask[:, None, None, :]).context
            read = read.index_copy(0, rows, context.squeeze(2).to(read.dtype))
        return read


def _project_sparse(features: Tensor, weight: Tensor, dropout: float) -> Tensor | None:
    """The projection of features that are nearly all zero, such as bags of words; None for others.

    Dropout of a zero changes nothing. A row reads the columns of the weight as a node reads its neighbours.
    """
    if exporting() or features.requires_grad or features.dtype != weight.dtype:
        return None
    found = nonzero_rows(features, features.numel() // SPARSE)
    if found is None:
        return None
    starts, columns, values = found
    values = F.dropout(values, dropout)
    return read_neighbours(values.unsqueeze(1), weight.T.unsqueeze(1), starts, columns).squeeze(1)
