"""Graph attention networks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from torch import Tensor, nn
from torch.nn import functional as F

from saccade.checks import check_count
from saccade.layers.graph import Block, GraphAttention, Neighbourhoods, degree_blocks
from saccade.models.base import models
from saccade.scores import Score
from saccade.selections import Selection


@models.register("gat")
class GAT(nn.Module):
    """Labels the nodes of a graph; in each layer, nodes attend to their neighbours.

    Shapes:
        nodes (batch,): indices into features (subgraph, dim); starts (subgraph + 1,), neighbours (edges,): the
        neighbours of node i are neighbours[starts[i]:starts[i + 1]] -> logits (batch, classes). The subgraph holds all
        nodes within `hops` steps of the batch.

    Reference:
        Veličković et al. (2018), arXiv:1710.10903. On Cora: num_layers 2, num_heads 8, head_dim 8, output_heads 1,
        dropout 0.6. With the score gatv2: Brody et al. (2022), arXiv:2105.14491.

    Args:
        dim: features of a node.
        classes: the number of labels.
        hops: how far the subgraph reaches; each layer needs one step.
        num_layers: with n layers, a node sees nodes up to n steps away.
        num_heads, head_dim: of all layers but the last.
        output_heads: of the last layer, which averages them.
        score, selection: used in every layer; a short name, or one with arguments.
        dropout: of the features and attention weights in every layer.
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
                f"num_layers={num_layers} needs nodes up to {num_layers} steps away, but the field has hops={hops}: "
                f"set hops to {num_layers}."
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

    def forward(self, nodes: Tensor, features: Tensor, starts: Tensor, neighbours: Tensor) -> Tensor:
        return _label(self.layers, nodes, features, Neighbourhoods(starts, neighbours))

    def over(self, features: Tensor, starts: Tensor, neighbours: Tensor) -> nn.Module:
        """The model with a whole graph inside: nodes (batch,) -> logits (batch, classes)."""
        return _OneGraph(self, features, degree_blocks(starts, neighbours))


class _OneGraph(nn.Module):
    def __init__(self, model: GAT, features: Tensor, blocks: Sequence[Block]) -> None:
        super().__init__()
        self.layers = model.layers
        self.register_buffer("features", features)
        for number, block in enumerate(blocks):
            for name, tensor in block._asdict().items():
                self.register_buffer(f"{name}_{number}", tensor)
        self.count = len(blocks)

    def forward(self, nodes: Tensor) -> Tensor:
        parts = ([getattr(self, f"{name}_{number}") for name in Block._fields] for number in range(self.count))
        blocks = [Block(*each) for each in parts]
        nothing = nodes.new_zeros(0)
        return _label(self.layers, nodes, self.get_buffer("features"), Neighbourhoods(nothing, nothing, blocks=blocks))


def _label(layers: nn.ModuleList, nodes: Tensor, features: Tensor, near: Neighbourhoods) -> Tensor:
    *hidden, last = layers
    for layer in hidden:
        features = F.elu(layer(features, near))
    logits: Tensor = last(features, near)[nodes]
    return logits
