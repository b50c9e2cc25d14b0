"""Attention through several layers: rollout and flow."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from saccade.interpretation.alignments.max_flow import FlowGraph


def rollout(layers: Sequence[Tensor], *, residual: float = 0.5) -> Tensor:
    r"""How much of each input is in each output, if every layer mixes by its attention.

    .. math:: \tilde A = A_L A_{L-1} \cdots A_1, \qquad
        A_l = (1 - r) \bar W_l + r I \text{ with rows that sum to 1}

    The bar is the mean over heads, I stands for the residual connection. What a decoder sees of the inputs of its
    encoder is `cross_weights @ rollout(encoder_layers)`.

    Shapes:
        layers, the first one first, each (tokens, tokens), with heads (heads, tokens, tokens), or of a batch
        (*batch, heads, tokens, tokens) -> (*batch, tokens, tokens).

    Reference:
        Abnar & Zuidema (2020), arXiv:2005.00928, section 3; r is 0.5 there.

    Args:
        layers: a list with the self-attention of each layer.
        residual: how much of each state comes from the layer below at the same place.
    """
    mixed = [_mix(weights, residual) for weights in _check(layers, residual)]
    rolled = mixed[0]
    for matrix in mixed[1:]:
        rolled = matrix @ rolled
    return rolled


def flow(layers: Sequence[Tensor], *, residual: float = 0.5, queries: Sequence[int] | None = None) -> Tensor:
    """How much could flow from each output down to each input, if attention weights were the widths of pipes.

    The layers are a graph whose edges, from each place to the places of the layer below, have the weights of `rollout`
    as capacities; a value is the greatest flow between two places, computed exactly. It takes seconds for 6 layers of
    20 tokens and grows with a high power of the length, so that long inputs need a choice of `queries`.

    Shapes:
        layers, the first one first, each (tokens, tokens) or with heads (heads, tokens, tokens)
        -> (queries, tokens), float64.

    Reference:
        Abnar & Zuidema (2020), arXiv:2005.00928, section 3.

    Args:
        layers: a list with the self-attention of each layer.
        residual: as in `rollout`.
        queries: the outputs to ask about; all of them if left out.
    """
    if any(weights.dim() > 3 for weights in _check(layers, residual)):
        raise ValueError(
            "flow takes one sequence at a time: each layer is (heads, tokens, tokens) or (tokens, tokens)."
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
            f"layers must be a list with a tensor for each layer, got one tensor {tuple(layers.shape)}: write "
            "list(tensor) if its first axis is of layers, [tensor] if it is one layer."
        )
    if not len(layers):
        raise ValueError("There are no layers: give the self-attention of one or more.")
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
