"""Graph attention networks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from saccade.checks import check_count
from saccade.layers.graph import DegreeBlock, GraphAttention, Neighbourhoods, degree_blocks
from saccade.models.base import models
from saccade.scores import Score
from saccade.selections import Selection


def hidden_layers(*, dim: int, num_layers: int, num_heads: int, head_dim: int, **shared: Any) -> nn.ModuleList:
    """A stack of layers whose heads are concatenated; `shared` are arguments of all layers."""
    inner = num_heads * head_dim
    return nn.ModuleList(
        GraphAttention(input_dim=inner if number else dim, head_dim=head_dim, num_heads=num_heads, **shared)
        for number in range(num_layers)
    )


def readout(*, dim: int, hidden_dim: int, classes: int, dropout: float) -> nn.Sequential:
    """Logits from the vector of a graph or a pair of nodes."""
    hidden = (nn.Dropout(dropout), nn.Linear(dim, hidden_dim), nn.ELU())
    return nn.Sequential(*hidden, nn.Dropout(dropout), nn.Linear(hidden_dim, classes))


def check_hops(num_layers: int, hops: int) -> None:
    """Rejects a model with more layers than the field's hops."""
    check_count("num_layers", num_layers)
    if num_layers > hops:
        raise ValueError(
            f"num_layers={num_layers} needs nodes up to {num_layers} steps away, but the field has hops={hops}: "
            f"set hops to {num_layers}."
        )


@models.register("gat")
class GAT(nn.Module):
    """Labels the nodes of a graph; in each layer, nodes attend to their neighbours.

    Shapes:
        nodes (batch,): indices into features (subgraph, dim); starts (subgraph + 1,), neighbours (edges,): the
        neighbours of node i are neighbours[starts[i]:starts[i + 1]]; edges (edges, edge_dim), if edges have features
        -> logits (batch, classes). The subgraph contains all nodes within `hops` steps of the batch.

    Reference:
        Veličković et al. (2018), arXiv:1710.10903. On Cora: num_layers 2, num_heads 8, head_dim 8, output_heads 1,
        dropout 0.6. With the score gatv2: Brody et al. (2022), arXiv:2105.14491.

    Args:
        dim: features of a node.
        classes: the number of labels.
        hops: how far the subgraph reaches; each layer needs one step.
        edge_dim: features of an edge; None if edges have none.
        num_layers: with n layers, a node sees nodes up to n steps away.
        num_heads, head_dim: of all layers but the last.
        output_heads: of the last layer, which averages them.
        score, selection: used in every layer; a short name, or one with arguments.
        separate: give the node that attends a projection of its own, as GATv2 may.
        skip: add a projection of a node's own features to what it read, in every layer.
        dropout: of the features and attention weights in every layer.
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
        output_heads: int = 1,
        score: str | Score | partial[Score] = "gat",
        selection: str | Selection | partial[Selection] = "softmax",
        separate: bool = False,
        skip: bool = False,
        dropout: float = 0.6,
    ) -> None:
        super().__init__()
        check_hops(num_layers, hops)
        shared: dict[str, Any] = {"score": score, "selection": selection, "separate": separate, "skip": skip}
        shared |= {"edge_dim": edge_dim, "dropout": dropout}
        heads = {"num_heads": num_heads, "head_dim": head_dim}
        self.layers = hidden_layers(dim=dim, num_layers=num_layers - 1, **heads, **shared)
        inner = num_heads * head_dim if num_layers > 1 else dim
        self.layers.append(
            GraphAttention(input_dim=inner, head_dim=classes, num_heads=output_heads, average=True, **shared)
        )

    def forward(
        self, nodes: Tensor, features: Tensor, starts: Tensor, neighbours: Tensor, edges: Tensor | None = None
    ) -> Tensor:
        return _label(self.layers, nodes, features, Neighbourhoods(starts, neighbours, edges))

    def over(self, features: Tensor, starts: Tensor, neighbours: Tensor, edges: Tensor | None = None) -> nn.Module:
        """The model with a whole graph built in: nodes (batch,) -> logits (batch, classes)."""
        return _NodesOfOneGraph(self, features, degree_blocks(starts, neighbours), edges)


class OneGraph(nn.Module):
    """Common base of models with a whole graph built in.

    Args:
        features: (nodes, dim).
        blocks: `degree_blocks` of the graph.
        edges: (edges, edge_dim); None if edges have no features.
    """

    features: Tensor

    def __init__(self, features: Tensor, blocks: Sequence[DegreeBlock], edges: Tensor | None) -> None:
        super().__init__()
        self.register_buffer("features", features)
        self.edges: Tensor | None
        self.register_buffer("edges", edges)
        for number, block in enumerate(blocks):
            for name, tensor in block._asdict().items():
                self.register_buffer(f"{name}_{number}", tensor)
        self.count = len(blocks)

    def near(self) -> Neighbourhoods:
        """Which nodes of the graph attend to which."""
        parts = ([getattr(self, f"{name}_{number}") for name in DegreeBlock._fields] for number in range(self.count))
        blocks = [DegreeBlock(*each) for each in parts]
        return Neighbourhoods(self.features, self.features, self.edges, blocks=blocks)


class _NodesOfOneGraph(OneGraph):
    def __init__(self, model: GAT, features: Tensor, blocks: Sequence[DegreeBlock], edges: Tensor | None) -> None:
        super().__init__(features, blocks, edges)
        self.layers = model.layers

    def forward(self, nodes: Tensor) -> Tensor:
        return _label(self.layers, nodes, self.features, self.near())


def _label(layers: nn.ModuleList, nodes: Tensor, features: Tensor, near: Neighbourhoods) -> Tensor:
    *hidden, last = layers
    for layer in hidden:
        features = F.elu(layer(features, near))
    logits: Tensor = last(features, near)[nodes]
    return logits
