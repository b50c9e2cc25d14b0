"""Attention over the neighbours of each node of a graph."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.attention import Attention
from saccade.layers.choices import make_score, make_selection
from saccade.scores import Score
from saccade.selections import Selection


class Block(NamedTuple):
    """Nodes with similar numbers of neighbours."""

    rows: Tensor
    """(rows,): which nodes."""
    neighbours: Tensor
    """(rows, degree): the neighbours of each, padded."""
    mask: Tensor
    """bool (rows, degree), True = real."""


def degree_blocks(neighbours: Tensor, mask: Tensor) -> list[Block]:
    """Neighbour lists (nodes, degree), padded at the end, in blocks of degree 1, 2, 4, 8, ...: little is padding."""
    degrees = mask.sum(1)
    blocks, least, most = [], 0, 1
    while least < int(degrees.max() if len(degrees) else 0):
        rows = ((degrees > least) & (degrees <= most)).nonzero().squeeze(1)
        if len(rows):
            width = int(degrees[rows].max())
            blocks.append(Block(rows, neighbours[rows, :width], mask[rows, :width]))
        least, most = most, 2 * most
    return blocks


class GraphAttention(nn.Module):
    r"""Each node reads its neighbours, with several heads.

    .. math:: z_i = W h_i, \qquad h'_i = \mathrm{attention}(z_i, \{z_j : j \in N(i)\})

    Heads are concatenated, or averaged in the last layer. A node without neighbours gets zeros.

    Shapes:
        features (nodes, input_dim), blocks of `degree_blocks` -> (nodes, num_heads * head_dim), or (nodes, head_dim) if
        averaged.

    Reference:
        Veličković et al. (2018), arXiv:1710.10903, equations 3 to 6.

    Args:
        score, selection: of the attention, by short name or with arguments of their own; the paper's are gat and
            softmax.
        average: the mean of the heads instead of all of them.
        dropout: of the features, and of the attention weights.
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
        projected = self.proj(F.dropout(features, self.dropout, self.training))
        heads = projected.unflatten(1, (self.num_heads, -1))
        read = torch.zeros_like(heads)
        for rows, neighbours, mask in blocks:
            keys = heads[neighbours].transpose(1, 2)  # (rows, heads, degree, head_dim)
            context = self.attention(heads[rows].unsqueeze(2), keys, mask=mask[:, None, None, :]).context
            read = read.index_copy(0, rows, context.squeeze(2).to(read.dtype))
        return (read.mean(1) if self.average else read.flatten(1)) + self.bias
