"""Graph attention networks."""

from __future__ import annotations

from functools import partial

from torch import Tensor, nn
from torch.nn import functional as F

from saccade.checks import check_count
from saccade.layers.graph import GraphAttention, degree_blocks
from saccade.models.base import models
from saccade.scores import Score
from saccade.selections import Selection


@models.register("gat")
class GAT(nn.Module):
    """Labels nodes of a graph by what they read from their neighbours, layer by layer.

    Shapes:
        nodes (batch,), features (subgraph, dim), neighbours (subgraph, degree), mask bool (subgraph, degree), True =
        real -> logits (batch, classes). The subgraph holds all nodes within `hops` steps of the batch.

    Reference:
        Veličković et al. (2018), arXiv:1710.10903. On Cora: num_layers 2, num_heads 8, head_dim 8, output_heads 1,
        dropout 0.6. With the score gatv2: Brody et al. (2022), arXiv:2105.14491.

    Args:
        hops: how far the subgraph reaches, which must be as many steps as there are layers.
        score, selection: of every layer, by short name or with arguments of their own.
        num_heads, head_dim: of all layers but the last.
        output_heads: of the last layer, which averages them.
        dropout: of features and attention weights.
    """

    def __init__(
        self,
        *,
        dim: int,
        classes: int,
        hops: int,
        num_layers: int = 2,
        num_heads: int = 8,
        head_dim: int = 8,
        output_heads: int = 1,
        score: str | Score | partial[Score] = "gat",
        selection: str | Selection | partial[Selection] = "softmax",
        dropout: float = 0.6,
    ) -> None:
        super().__init__()
        check_count("num_layers", num_layers)
        if num_layers > hops:
            raise ValueError(
                f"num_layers={num_layers} reads neighbours {num_layers} steps away, and the field gives hops={hops}: "
                f"set its hops to {num_layers}."
            )
        shared = {"score": score, "selection": selection, "dropout": dropout}
        inner = num_heads * head_dim
        hidden = [
            GraphAttention(input_dim=inner if number else dim, head_dim=head_dim, num_heads=num_heads, **shared)  # type: ignore[arg-type]
            for number in range(num_layers - 1)
        ]
        last = GraphAttention(
            input_dim=inner if hidden else dim,
            head_dim=classes,
            num_heads=output_heads,
            average=True,
            **shared,  # type: ignore[arg-type]
        )
        self.layers = nn.ModuleList([*hidden, last])

    def forward(self, nodes: Tensor, features: Tensor, neighbours: Tensor, mask: Tensor) -> Tensor:
        blocks = degree_blocks(neighbours, mask)
        *hidden, last = self.layers
        for layer in hidden:
            features = F.elu(layer(features, blocks))
        logits: Tensor = last(features, blocks)[nodes]
        return logits
