"""Attention over the neighbours of each node of a graph."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.attention import Attention
from saccade.kernels.modes import exporting
from saccade.layers.choices import make_score, make_selection
from saccade.scores import Score
from saccade.selections import Selection

SPARSE = 8
"""Features with fewer than one non-zero value in this many are projected as a sparse matrix."""


class Block(NamedTuple):
    """Nodes with similar numbers of neighbours."""

    rows: Tensor
    """(rows,): the nodes."""
    neighbours: Tensor
    """(rows, degree): the neighbours of each, padded at the end."""
    mask: Tensor
    """bool (rows, degree), True = real."""


def degree_blocks(starts: Tensor, neighbours: Tensor) -> list[Block]:
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
            found = neighbours[torch.where(mask, starts[rows].unsqueeze(1) + places, 0)]
            blocks.append(Block(rows, torch.where(mask, found, 0), mask))
        least, most = most, 2 * most
    return blocks


class GraphAttention(nn.Module):
    r"""Lets each node attend to its neighbours, with several heads.

    .. math:: z_i = W h_i, \qquad h'_i = \mathrm{attention}(z_i, \{z_j : j \in N(i)\})

    A node without neighbours reads zeros.

    Shapes:
        features (nodes, input_dim), blocks made by `degree_blocks` -> (nodes, num_heads * head_dim), or
        (nodes, head_dim) with `average`.

    Reference:
        Veličković et al. (2018), arXiv:1710.10903, equations 3 to 6.

    Args:
        input_dim: features of a node.
        head_dim: features of a head.
        num_heads: how many heads there are.
        score, selection: of the attention, by short name or with arguments of their own; the paper uses gat and
            softmax.
        average: average the heads instead of concatenating them, as in the paper's last layer.
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
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        sizes = dict.fromkeys(("dim", "query_dim", "key_dim", "hidden_dim"), head_dim) | {"num_heads": num_heads}
        self.proj = nn.Linear(input_dim, num_heads * head_dim, bias=False)
        self.attention = Attention(
            score=make_score(score, **sizes), selection=make_selection(selection, **sizes), dropout=dropout
        )
        self.bias = nn.Parameter(torch.zeros(head_dim if average else num_heads * head_dim))
        self.num_heads = num_heads
        self.average = average
        self.dropout = dropout
        nn.init.xavier_uniform_(self.proj.weight)

    def forward(self, features: Tensor, blocks: list[Block]) -> Tensor:
        projected = _project_sparse(features, self.proj.weight, self.dropout if self.training else 0.0)
        if projected is None:
            projected = self.proj(F.dropout(features, self.dropout, self.training))
        heads = projected.unflatten(1, (self.num_heads, -1))
        read = torch.zeros_like(heads)
        for rows, neighbours, mask in blocks:
            keys = heads[neighbours].transpose(1, 2)  # (rows, heads, degree, head_dim)
            context = self.attention(heads[rows].unsqueeze(2), keys, mask=mask[:, None, None, :]).context
            read = read.index_copy(0, rows, context.squeeze(2).to(read.dtype))
        return (read.mean(1) if self.average else read.flatten(1)) + self.bias


def _project_sparse(features: Tensor, weight: Tensor, dropout: float) -> Tensor | None:
    """The projection of features that are nearly all zero, such as bags of words; None for others.

    Dropping a zero changes nothing. On Cora, whose features are 99 % zeros, a step takes half the time.
    """
    if exporting() or features.requires_grad or features.dtype != weight.dtype:
        return None
    places = features.nonzero()
    if SPARSE * len(places) > features.numel():
        return None
    row, column = places.unbind(1)
    starts = torch.searchsorted(row, torch.arange(len(features), device=row.device))
    values = F.dropout(features[row, column], dropout)
    return F.embedding_bag(column, weight.T.contiguous(), starts, mode="sum", per_sample_weights=values)
