"""Scores of neighbours along the edges of a graph; for the shapes see `saccade.kernels.graph`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from saccade.kernels import native
from saccade.kernels.graph import again, usable, zeros
from saccade.kernels.segments import rows_of

PARTS = 64
"""Groups of nodes whose sums for the vector of GATv2 are taken apart: the same, whatever the number of threads."""


def gat_reference(
    queries: Tensor, keys: Tensor, edges: Tensor | None, starts: Tensor, neighbours: Tensor, slope: float
) -> Tensor:
    """A leaky ReLU of the sum of a term for the query, one for the key and one for the edge: (edges, heads)."""
    x = queries[rows_of(starts, len(neighbours))] + keys[neighbours]
    return F.leaky_relu(x if edges is None else x + edges, slope)


def gatv2_reference(
    queries: Tensor,
    keys: Tensor,
    edges: Tensor | None,
    vector: Tensor,
    starts: Tensor,
    neighbours: Tensor,
    slope: float,
) -> Tensor:
    """The vector (heads, dim) times a leaky ReLU of the sum of query, key and edge: (edges, heads)."""
    return (vector * gat_reference(queries, keys, edges, starts, neighbours, slope)).sum(-1)


def gat_scores(
    queries: Tensor, keys: Tensor, edges: Tensor | None, starts: Tensor, neighbours: Tensor, slope: float
) -> Tensor:
    """`gat_reference`, for queries and keys (nodes, heads) and edges (edges, heads)."""
    given = [queries, keys] if edges is None else [queries, keys, edges]
    if not usable(*given):
        return gat_reference(queries, keys, edges, starts, neighbours, slope)
    found: Tensor = _GAT.apply(queries, keys, edges, starts, neighbours, slope)  # type: ignore[no-untyped-call]
    return found


def gatv2_scores(
    queries: Tensor,
    keys: Tensor,
    edges: Tensor | None,
    vector: Tensor,
    starts: Tensor,
    neighbours: Tensor,
    slope: float,
) -> Tensor:
    """`gatv2_reference`, for queries and keys (nodes, heads, dim), edges (edges, heads, dim), vector (heads, dim)."""
    given = [queries, keys, vector] if edges is None else [queries, keys, vector, edges]
    if not usable(*given):
        return gatv2_reference(queries, keys, edges, vector, starts, neighbours, slope)
    found: Tensor = _GATv2.apply(queries, keys, edges, vector, starts, neighbours, slope)  # type: ignore[no-untyped-call]
    return found


class _GAT(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        queries, keys, edges, starts, neighbours, slope = inputs
        ctx.save_for_backward(queries, keys, edges, starts, neighbours)
        ctx.slope = slope
        heads = keys.shape[1]
        out: Tensor = keys.new_empty(len(neighbours), heads)
        native.run(
            native.function("gat_forward", keys.dtype),
            queries.contiguous(),
            keys.contiguous(),
            None if edges is None else edges.contiguous(),
            starts,
            neighbours,
            out,
            float(slope),
            heads,
            items=len(starts) - 1,
            operations=4 * out.numel(),
        )
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys, edges, starts, neighbours = ctx.saved_tensors
        if torch.is_grad_enabled():
            return again(gat_reference, (queries, keys, edges, starts, neighbours, ctx.slope), grads[0])
        heads = keys.shape[1]
        of_edges = torch.empty_like(grads[0], memory_format=torch.contiguous_format)
        of_queries, of_keys = (zeros(each) for each in (queries, keys))
        native.run(
            native.function("gat_backward", keys.dtype),
            queries.contiguous(),
            keys.contiguous(),
            None if edges is None else edges.contiguous(),
            grads[0].contiguous(),
            starts,
            neighbours,
            of_edges,
            of_queries,
            float(ctx.slope),
            heads,
            items=len(starts) - 1,
            operations=4 * of_edges.numel(),
        )
        native.run(
            native.function("scatter_sum", keys.dtype),
            of_edges,
            neighbours,
            of_keys,
            len(neighbours),
            heads,
            items=len(keys),
            operations=2 * of_edges.numel(),
        )
        return of_queries, of_keys, None if edges is None else of_edges, None, None, None


class _GATv2(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        queries, keys, edges, vector, starts, neighbours, slope = inputs
        ctx.save_for_backward(queries, keys, edges, vector, starts, neighbours)
        ctx.slope = slope
        _, heads, dim = keys.shape
        out: Tensor = keys.new_empty(len(neighbours), heads)
        native.run(
            native.function("gatv2_forward", keys.dtype),
            queries.contiguous(),
            keys.contiguous(),
            None if edges is None else edges.contiguous(),
            vector.contiguous(),
            starts,
            neighbours,
            out,
            float(slope),
            heads,
            dim,
            items=len(starts) - 1,
            operations=4 * out.numel() * dim,
        )
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys, edges, vector, starts, neighbours = ctx.saved_tensors
        if torch.is_grad_enabled():
            inputs = queries, keys, edges, vector, starts, neighbours, ctx.slope
            return again(gatv2_reference, inputs, grads[0])
        count, heads, dim = keys.shape
        nodes = len(starts) - 1
        of_queries, of_keys = (zeros(each) for each in (queries, keys))
        of_edges = None if edges is None else torch.empty_like(edges, memory_format=torch.contiguous_format)
        of_vector = vector.new_zeros(PARTS, heads, dim)
        given = (
            queries.contiguous(),
            keys.contiguous(),
            None if edges is None else edges.contiguous(),
            vector.contiguous(),
            grads[0].contiguous(),
            starts,
            neighbours,
        )
        operations = 6 * grads[0].numel() * dim
        native.run(
            native.function("gatv2_backward", keys.dtype),
            *given,
            of_queries,
            of_edges,
            of_vector,
            float(ctx.slope),
            nodes,
            PARTS,
            heads,
            dim,
            items=PARTS,
            operations=operations,
        )
        native.run(
            native.function("gatv2_backward_keys", keys.dtype),
            *given,
            of_keys,
            float(ctx.slope),
            nodes,
            heads,
            dim,
            items=count,
            operations=operations,
        )
        return of_queries, of_keys, of_edges, of_vector.sum(0), None, None, None
