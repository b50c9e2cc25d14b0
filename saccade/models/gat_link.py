"""Links between nodes, from graph attention."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.layers.graph import DegreeBlock, Neighbourhoods, degree_blocks
from saccade.models.base import models
from saccade.models.comparing import compared
from saccade.models.gat import OneGraph, check_hops, hidden_layers, readout
from saccade.scores import Score
from saccade.selections import Selection


@models.register("gat_link")
class LinkGAT(nn.Module):
    r"""Classifies pairs of nodes: both are encoded by graph attention, and their vectors are compared.

    .. math:: z = W_2 \operatorname{ELU}(W_1 [h_a + h_b; |h_a - h_b|; h_a \odot h_b])

    Shapes:
        pairs (batch, 2): indices into features (subgraph, dim); starts, neighbours and edges as for `GAT` -> logits
        (batch, classes).

    Reference:
        The encoder is that of Veličković et al. (2018), arXiv:1710.10903.

    Args:
        dim, classes, hops, edge_dim, num_layers, num_heads, head_dim, score, selection, separate, skip, dropout: as in
            `GAT`; all layers concatenate their heads.
        directed: whether a link from a to b is another one than a link from b to a.
    """

    def __init__(
        self,
        *,
        dim: int,
        classes: int,
        hops: int,
        edge_dim: int | None = None,
        num_layers: int = 2,
        num_heads: int = 8,
        head_dim: int = 8,
        score: str | Score | partial[Score] = "gat",
        selection: str | Selection | partial[Selection] = "softmax",
        separate: bool = False,
        skip: bool = True,
        directed: bool = False,
        dropout: float = 0.3,
    ) -> None:
        super().__init__()
        check_hops(num_layers, hops)
        self.layers = hidden_layers(
            dim=dim,
            num_layers=num_layers,
            num_heads=num_heads,
            head_dim=head_dim,
            score=score,
            selection=selection,
            separate=separate,
            skip=skip,
            edge_dim=edge_dim,
            dropout=dropout,
        )
        inner = num_heads * head_dim
        self.directed = directed
        self.output = readout(dim=(4 if directed else 3) * inner, hidden_dim=inner, classes=classes, dropout=dropout)

    def forward(
        self, pairs: Tensor, features: Tensor, starts: Tensor, neighbours: Tensor, edges: Tensor | None = None
    ) -> Tensor:
        return self.compare(pairs, features, Neighbourhoods(starts, neighbours, edges))

    def compare(self, pairs: Tensor, features: Tensor, near: Neighbourhoods) -> Tensor:
        """The logits of pairs of nodes."""
        for layer in self.layers:
            features = F.elu(layer(features, near))
        one, other = features[pairs[:, 0]], features[pairs[:, 1]]
        both = compared(one, other) if self.directed else torch.cat([one + other, (one - other).abs(), one * other], 1)
        logits: Tensor = self.output(both)
        return logits

    def over(self, features: Tensor, starts: Tensor, neighbours: Tensor, edges: Tensor | None = None) -> nn.Module:
        """The model with a whole graph built in: pairs (batch, 2) -> logits (batch, classes)."""
        return _LinksOfOneGraph(self, features, degree_blocks(starts, neighbours), edges)


class _LinksOfOneGraph(OneGraph):
    def __init__(self, model: LinkGAT, features: Tensor, blocks: Sequence[DegreeBlock], edges: Tensor | None) -> None:
        super().__init__(features, blocks, edges)
        self.model = model

    def forward(self, pairs: Tensor) -> Tensor:
        return self.model.compare(pairs, self.features, self.near())
