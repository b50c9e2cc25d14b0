"""Graph attention against PyTorch Geometric: equal weights, and equal numbers before anything is timed.

SACCADE_DATA names the data folder, which contains `planetoid/cora.npz`.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.harness import Memory, Timing, forward_backward
from saccade.fields import Node
from saccade.layers.graph import GraphAttention, Neighbourhoods
from saccade.models import GAT
from saccade.selections import segment_softmax

ROOT = Path(__file__).resolve().parent.parent
NODES, EDGES, HEADS, DIM = 100_000, 2_000_000, 8, 16
CLOSE = {"rtol": 1e-5, "atol": 1e-5}


def large() -> tuple[Tensor, Tensor]:
    """(2, EDGES), from and to, sorted by the node that attends; and where the neighbours of each begin."""
    torch.manual_seed(1)
    to = torch.randint(0, NODES, (EDGES,)).sort().values
    edges = torch.stack([torch.randint(0, NODES, (EDGES,)), to])
    return edges, torch.searchsorted(to, torch.arange(NODES + 1))


def softmax(heads: int, pointers: bool) -> tuple[Callable[[], object], ...]:
    from torch_geometric.utils import softmax as theirs

    edges, starts = large()
    scores = torch.randn(EDGES, heads, requires_grad=True)

    def peer(scores: Tensor) -> Tensor:
        return theirs(scores, ptr=starts) if pointers else theirs(scores, edges[1], num_nodes=NODES)

    with torch.no_grad():
        torch.testing.assert_close(segment_softmax(scores, starts), peer(scores), **CLOSE)
    return forward_backward(lambda scores: segment_softmax(scores, starts), scores), forward_backward(peer, scores)


def layer(name: str) -> tuple[Callable[[], object], ...]:
    import torch_geometric.nn as pyg

    edges, starts = large()
    ours = GraphAttention(input_dim=DIM * HEADS, head_dim=DIM, num_heads=HEADS, score=name)
    options: dict[str, Any] = {"heads": HEADS, "add_self_loops": False}
    if name == "gat":
        theirs: nn.Module = pyg.GATConv(DIM * HEADS, DIM, **options)
    else:
        theirs = pyg.GATv2Conv(DIM * HEADS, DIM, share_weights=True, **options)
        nn.init.zeros_(theirs.lin_l.bias)
        theirs.lin_l.bias.requires_grad_(False)  # ours has none
    copy_weights(theirs, ours)
    near, x = Neighbourhoods(starts, edges[0]), torch.randn(NODES, DIM * HEADS, requires_grad=True)
    with torch.no_grad():
        torch.testing.assert_close(ours(x, near), theirs(x, edges), **CLOSE)
    return (
        forward_backward(lambda x: ours(x, near), x, parameters=list(ours.parameters())),
        forward_backward(lambda x: theirs(x, edges), x, parameters=list(theirs.parameters())),
    )


def gat_layer() -> tuple[Callable[[], object], ...]:
    return layer("gat")


def gatv2_layer() -> tuple[Callable[[], object], ...]:
    return layer("gatv2")


def copy_weights(theirs: Any, ours: GraphAttention) -> None:
    """Gives our layer the weights of GATConv or GATv2Conv."""
    score: Any = ours.attention.score
    with torch.no_grad():
        if hasattr(score, "vector"):
            ours.proj.weight.copy_(theirs.lin_l.weight)
            score.vector.copy_(theirs.att[0])
        else:
            ours.proj.weight.copy_(theirs.lin.weight)
            score.query_vector.copy_(theirs.att_dst[0])
            score.key_vector.copy_(theirs.att_src[0])
        ours.bias.copy_(theirs.bias)


class Peer(nn.Module):
    """The network of the paper, as PyTorch Geometric's example writes it."""

    def __init__(self, dim: int, classes: int, dropout: float = 0.6) -> None:
        super().__init__()
        import torch_geometric.nn as pyg

        self.first = pyg.GATConv(dim, 8, heads=8, dropout=dropout)
        self.last = pyg.GATConv(64, classes, heads=1, concat=False, dropout=dropout)
        self.dropout = dropout

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        x = F.elu(self.first(F.dropout(x, self.dropout, self.training), edges))
        found: Tensor = self.last(F.dropout(x, self.dropout, self.training), edges)
        return found


def cora() -> tuple[Callable[[], object], ...]:
    """An epoch: forward, backward and update with the dropout of the paper, over the whole graph on both sides."""
    import numpy as np

    folder = Path(os.environ.get("SACCADE_DATA", ROOT.parent / "shared" / "data"))
    path = folder / "planetoid" / "cora.npz"
    if not path.is_file():
        raise FileNotFoundError(f"{path} (set SACCADE_DATA)")
    with np.load(path, allow_pickle=False) as archive:
        labels, train = (torch.from_numpy(archive[name]).long() for name in ("labels", "train"))
        edges = torch.from_numpy(archive["edges"]).long().T.contiguous()
    field = Node(graph=str(path), row_normalise=True)
    graph = field.pad(range(len(labels)))
    x, starts, neighbours = (graph[name] for name in ("features", "starts", "neighbours"))
    classes = int(labels.max()) + 1
    ours, theirs = GAT(dim=x.shape[1], classes=classes, hops=2), Peer(x.shape[1], classes)
    copy_weights(theirs.first, ours.layers[0])  # type: ignore[arg-type]
    copy_weights(theirs.last, ours.layers[1])  # type: ignore[arg-type]

    def run_ours() -> Tensor:
        return ours(train, x, starts, neighbours)

    def run_theirs() -> Tensor:
        return theirs(x, edges)[train]

    gradients = []
    for model, run in ((ours, run_ours), (theirs, run_theirs)):
        model.eval()
        F.cross_entropy(run(), labels[train]).backward()
        last = model.layers[1].proj.weight if model is ours else theirs.last.lin.weight
        gradients.append(last.grad.clone())
        model.train()
    torch.testing.assert_close(*gradients, **CLOSE)
    ours.eval(), theirs.eval()
    torch.testing.assert_close(run_ours(), run_theirs(), **CLOSE)
    ours.train(), theirs.train()
    return epoch(ours, run_ours, labels[train]), epoch(theirs, run_theirs, labels[train])


def epoch(model: nn.Module, run: Callable[[], Tensor], wanted: Tensor) -> Callable[[], None]:
    optimiser = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=5e-4)

    def step() -> None:
        optimiser.zero_grad()
        F.cross_entropy(run(), wanted).backward()
        optimiser.step()

    return step


def cases() -> list[Timing | Memory]:
    large_graph = f"{NODES:,} nodes, {EDGES:,} edges, {HEADS} heads x {DIM}"
    rows: list[Timing | Memory] = [Timing("GAT training epoch on Cora", "PyG", cora, must=2, aim=4)]
    for name, build, peer in (("GAT", gat_layer, "PyG GATConv"), ("GATv2", gatv2_layer, "PyG GATv2Conv")):
        must, aim = (2, 4) if name == "GAT" else (None, None)
        rows.append(Timing(f"{name} layer, {large_graph}", peer, build, must=must, aim=aim))
        rows.append(Memory(f"{name} layer, {large_graph}", peer, build, must=2 if must else None))
    for heads in (1, HEADS):
        for pointers in (False, True):
            what = f"segment softmax, {EDGES:,} edges, {heads} head{'s' * (heads > 1)}"
            peer = f"PyG utils.softmax, by {'ptr' if pointers else 'index'}"
            rows.append(Timing(what, peer, lambda h=heads, p=pointers: softmax(h, p), must=3, aim=6))  # type: ignore[misc]
    return rows
