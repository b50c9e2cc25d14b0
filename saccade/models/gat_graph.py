"""Whole graphs, from graph attention."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.checks import check_count
from saccade.encoders import GivenEncoder, PooledEncoder
from saccade.encoders.pooled import PoolingName
from saccade.layers.graph import DegreeBlock, Neighbourhoods
from saccade.models.base import models
from saccade.models.gat import hidden_layers, readout
from saccade.scores import Score
from saccade.selections import Selection


@models.register("gat_graph")
class GraphGAT(nn.Module):
    r"""Labels whole graphs: nodes attend to their neighbours, and attention pools the nodes.

    .. math:: c = \mathrm{attention}(u, \{[h_i^{(1)}; ...; h_i^{(L)}]\}), \qquad z = W_2 \operatorname{ELU}(W_1 c)

    Shapes:
        features (batch, nodes, dim), mask bool (batch, nodes), starts (batch * nodes + 1,), neighbours (edges,): over
        the nodes of all graphs in order, padding included; edges (edges, edge_dim), if edges have features -> logits
        (batch, classes).

    Reference:
        Layers: Veličković et al. (2018), arXiv:1710.10903. Pooling by gates, with the selection sigmoid: Li et al.
        (2016), arXiv:1511.05493, equation 7. The states of all layers: Xu et al. (2018), arXiv:1806.03536.

    Args:
        dim: features of a node.
        classes: the number of labels.
        edge_dim: features of an edge; None if edges have none.
        num_layers, num_heads, head_dim: of the layers; all concatenate their heads.
        score, selection: of the attention to neighbours.
        separate, skip: as in `GAT`.
        pooling: "attention", or the "average" or "max" of the nodes.
        pooling_score, pooling_selection: of the attention that pools. The weights of softmax sum to one, those of
            sigmoid grow with the graph.
        num_queries: how many things the pooling looks for.
        dropout: of the features and attention weights in every layer, and of the pooled vector.
    """

    def __init__(
        self,
        *,
        dim: int,
        classes: int,
        edge_dim: int | None = None,
        num_layers: int = 3,
        num_heads: int = 4,
        head_dim: int = 8,
        score: str | Score | partial[Score] = "gatv2",
        selection: str | Selection | partial[Selection] = "softmax",
        separate: bool = False,
        skip: bool = True,
        pooling: PoolingName = "attention",
        pooling_score: str | Score | partial[Score] = "additive",
        pooling_selection: str | Selection | partial[Selection] = "softmax",
        num_queries: int = 1,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        check_count("num_layers", num_layers)
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
        self.pooled = PooledEncoder(
            encoder=GivenEncoder(dim=num_layers * inner),
            pooling=pooling,
            score=pooling_score,
            selection=pooling_selection,
            hidden_dim=inner,
            num_queries=num_queries,
        )
        self.output = readout(dim=self.pooled.output_dim, hidden_dim=inner, classes=classes, dropout=dropout)

    def forward(
        self, features: Tensor, mask: Tensor, starts: Tensor, neighbours: Tensor, edges: Tensor | None = None
    ) -> Tensor:
        return self.label(features, mask, Neighbourhoods(starts, neighbours, edges))

    def label(self, features: Tensor, mask: Tensor, near: Neighbourhoods) -> Tensor:
        """The logits of graphs, given which nodes attend to which."""
        state, states = features.flatten(0, 1), []
        for layer in self.layers:
            state = F.elu(layer(state, near))
            states.append(state)
        logits: Tensor = self.output(self.pooled(torch.cat(states, dim=1).unflatten(0, mask.shape), mask))
        return logits

    def over(self) -> nn.Module:
        """The same with neighbours in one padded array, so that the operations do not depend on the graphs."""
        return _Padded(self)


class _Padded(nn.Module):
    """Labels graphs, in a form that can be exported.

    Shapes:
        features (batch, nodes, dim), mask bool (batch, nodes), near (batch, nodes, degree): the neighbours of each node
        among all nodes of the batch, in order, near_mask bool of the same shape, edges (batch, nodes, degree, edge_dim)
        -> logits (batch, classes).
    """

    def __init__(self, model: GraphGAT) -> None:
        super().__init__()
        self.layers, self.pooled, self.output = model.layers, model.pooled, model.output

    def forward(
        self, features: Tensor, mask: Tensor, near: Tensor, near_mask: Tensor, edges: Tensor | None = None
    ) -> Tensor:
        flat, real = near.flatten(0, 1), near_mask.flatten(0, 1)
        rows = torch.arange(flat.shape[0], device=flat.device)
        numbers = torch.arange(flat.numel(), device=flat.device).view(flat.shape)
        of_edges = None if edges is None else edges.flatten(0, 2)
        block = DegreeBlock(rows, flat, real, numbers)
        return GraphGAT.label(self, features, mask, Neighbourhoods(flat, flat, of_edges, blocks=[block]))  # type: ignore[arg-type]
