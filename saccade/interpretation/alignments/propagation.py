"""Attention through several layers: rollout and flow."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from saccade.interpretation.alignments.max_flow import FlowGraph


def rollout(layers: Sequence[Tensor], *, residual: float = 0.5) -> Tensor:
    r"""How much of each input is in each output, if every layer mixes its inputs by its attention weights.

    .. math:: \tilde A = A_L A_{L-1} \cdots A_1, \qquad
        A_l = (1 - r) \bar W_l + r I \text{ with rows that sum to 1}

    The bar is the mean over heads, and I represents the residual connection. A decoder's attention to the encoder
    inputs is `cross_weights @ rollout(encoder_layers)`.

    Shapes:
        layers, in order, each (tokens, tokens), with heads (heads, tokens, tokens), or of a batch
        (*batch, heads, tokens, tokens) -> (*batch, tokens, tokens).

    Reference:
        Abnar & Zuidema (2020), arXiv:2005.00928, section 3; r is 0.5 there.

    Args:
        layers: a list with the self-attention of each layer.
        residual: how much of each state comes from the same position in the layer below.
    """
    mixed = [_mix(weights, residual) for weights in _check(layers, residual)]
    rolled = mixed[0]
    for matrix in mixed[1:]:
        rolled = matrix @ rolled
    return rolled


def flow(layers: Sequence[Tensor], *, residual: float = 0.5, queries: Sequence[int] | None = None) -> Tensor:
    """The maximum flow from each output to each input, with attention weights as capacities.

    The layers form a graph whose edges, from each position to the positions of the layer below, have the weights of
    `rollout` as capacities; each value is the exact maximum flow between two positions. This takes seconds for 6 layers
    of 20 tokens and grows with a high power of the length, so restrict `queries` for long inputs.

    Shapes:
        layers, in order, each (tokens, tokens) or with heads (heads, tokens, tokens)
        -> (queries, tokens), float64.

    Reference:
        Abnar & Zuidema (2020), arXiv:2005.00928, section 3.

    Args:
        layers: a list with the self-attention of each layer.
        residual: as in `rollout`.
        queries: the outputs to compute; all of them by default.
    """
    if any(weights.dim() > 3 for weights in _check(layers, residual)):
        raise ValueError(
            "flow takes one sequence at a time: each layer must be (heads, tokens, tokens) or (tokens, tokens)."
        )
    mixed = [_mix(weights, residual).double() for weights in layers]
    size = mixed[0].shape[-1]
    edges = [
        ((depth + 1) * size + row, depth * size + column, capacity)
        for depth, matrix in enumerate(mixed)
        for row, capacities in enumerate(matrix.tolist())
        for column, capacity in enumerate(capacities)
        if capacity > 0
    ]
    graph = FlowGraph((len(mixed) + 1) * size, edges)
    asked = range(size) if queries is None else queries
    top = len(mixed) * size
    rows = [[graph.max_flow(top + query, key) for key in range(size)] for query in asked]
    return torch.tensor(rows, dtype=torch.float64).reshape(len(rows), size)


def _check(layers: Sequence[Tensor], residual: float) -> Sequence[Tensor]:
    if isinstance(layers, Tensor):
        raise TypeError(
            f"layers must be a list with a tensor for each layer, got one tensor {tuple(layers.shape)}: pass "
            "list(tensor) if its first axis is layers, or [tensor] if it is one layer."
        )
    if not len(layers):
        raise ValueError("layers is empty: pass the self-attention of at least one layer.")
    if not 0 <= residual <= 1:
        raise ValueError(f"residual must be from 0 to 1, got {residual}.")
    for weights in layers:
        if weights.dim() < 2 or weights.shape[-1] != weights.shape[-2]:
            raise ValueError(f"layers must be (*batch, heads, tokens, tokens), got {tuple(weights.shape)}.")
        if weights.shape[-1] != layers[0].shape[-1]:
            raise ValueError(
                f"layers must have the same number of tokens, got {layers[0].shape[-1]} and {weights.shape[-1]}."
            )
    return layers


def _mix(weights: Tensor, residual: float) -> Tensor:
    mean = weights.mean(dim=-3) if weights.dim() > 2 else weights
    mixed = (1 - residual) * mean + residual * torch.eye(mean.shape[-1], dtype=mean.dtype, device=mean.device)
    total = mixed.sum(dim=-1, keepdim=True)
    return mixed / total.where(total > 0, 1)
