"""DictionaryLookup: each query node must find the value of the one key node that has the same key.

Complete bipartite graphs with k keys. A score that ranks the keys in the same order for every query cannot solve it.
"""

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.layers.graph import GraphAttention, Neighbourhoods

PUBLISHED = {"gatv2": "100", "gat": "fails"}
"""Brody et al. (2022), arXiv:2105.14491, section 4.1 and figure 4: one head, training and test accuracy."""

BATCH, SHARE = 512, 0.8


class Lookup(nn.Module):
    """One attention layer between embeddings and a linear output, as in the paper."""

    def __init__(self, k: int, *, score: str, dim: int = 128) -> None:
        super().__init__()
        self.k = k
        self.keys, self.values = nn.Embedding(k, dim), nn.Embedding(k + 1, dim)  # the last: not known
        self.layer = GraphAttention(input_dim=dim, head_dim=dim, num_heads=1, score=score, separate=True)
        self.output_proj = nn.Linear(dim, k)

    def forward(self, values: Tensor) -> Tensor:
        """values (graphs, k): that of each key -> logits (graphs, k, k) of each query."""
        graphs = len(values)
        numbers = torch.arange(self.k)
        queries = F.relu(self.keys(numbers) + self.values.weight[self.k]).expand(graphs, -1, -1)
        nodes = torch.cat([queries, F.relu(self.keys(numbers) + self.values(values))], dim=1).flatten(0, 1)
        read = self.layer(nodes, bipartite(graphs, self.k)).unflatten(0, (graphs, 2 * self.k))[:, : self.k]
        logits: Tensor = self.output_proj(F.relu(read))
        return logits


def bipartite(graphs: int, k: int) -> Neighbourhoods:
    """The queries of each graph attend to its keys; keys attend to nothing."""
    first = torch.arange(graphs).repeat_interleave(k) * 2 * k + k
    neighbours = (first.unsqueeze(1) + torch.arange(k)).flatten()
    degrees = torch.tensor([k] * k + [0] * k).repeat(graphs)
    return Neighbourhoods(F.pad(degrees.cumsum(0), (1, 0)), neighbours)


def measured(score: str, *, k: int, graphs: int, epochs: int, seed: int, kept: Path, again: bool) -> dict[str, Any]:
    """The accuracy on training and test graphs after training; training ends early once all answers are right."""
    if kept.exists() and not again:
        earlier: dict[str, Any] = json.loads(kept.read_text())
        return earlier
    torch.manual_seed(seed)
    values = torch.stack([torch.randperm(k) for _ in range(graphs)])
    train, test = values.split([round(SHARE * graphs), graphs - round(SHARE * graphs)])
    model = Lookup(k, score=score)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    epoch = right = 0
    for epoch in range(1, epochs + 1):
        for batch in train[torch.randperm(len(train))].split(BATCH):
            optimiser.zero_grad()
            F.cross_entropy(model(batch).flatten(0, 1), batch.flatten()).backward()
            optimiser.step()
        right = accuracy(model, test)
        print(f"dictionary, {score}: epoch {epoch}, test {right:.1f} %", flush=True)
        if right == 100.0 and accuracy(model, train) == 100.0:
            break
    result = {"train": accuracy(model, train), "test": right, "epochs": epoch, "k": k}
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(result))
    return result


@torch.no_grad()
def accuracy(model: nn.Module, values: Tensor) -> float:
    """The share of queries, in per cent, that find the right value."""
    right = sum(int((model(batch).argmax(-1) == batch).sum()) for batch in values.split(BATCH))
    return 100.0 * right / values.numel()
