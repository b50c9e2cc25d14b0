"""Attention along the edges of a graph: scores of neighbours, and reading their values by weights.

Node i attends to `neighbours[starts[i]:starts[i + 1]]`. Features are (nodes, heads, dim), what belongs to an edge is
(edges, heads). The kernels hold no copy of the features for each edge, which is what makes plain operators slow.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from saccade.kernels import native
from saccade.kernels.segments import rows_of

PARTS = 64
"""Groups of nodes whose sums for the vector of GATv2 are taken apart: the same, whatever the number of threads."""


def read_reference(weights: Tensor, values: Tensor, starts: Tensor, neighbours: Tensor) -> Tensor:
    """Gathers, multiplies and scatters, by plain operators."""
    found = weights.unsqueeze(-1) * values[neighbours]
    return values.new_zeros(len(starts) - 1, *values.shape[1:]).index_add(0, rows_of(starts, len(neighbours)), found)


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


def _usable(*tensors: Tensor) -> bool:
    """Whether a kernel can read them: all have the same type, which plain operators would promote to."""
    return native.usable(*tensors) and len({each.dtype for each in tensors}) == 1


def read_neighbours(weights: Tensor, values: Tensor, starts: Tensor, neighbours: Tensor) -> Tensor:
    """What each node reads: the sum of its neighbours' values (nodes, heads, dim), times weights (edges, heads)."""
    if not _usable(weights, values):
        return read_reference(weights, values, starts, neighbours)
    found: Tensor = _Read.apply(weights, values, starts, neighbours)  # type: ignore[no-untyped-call]
    return found


def gat_scores(
    queries: Tensor, keys: Tensor, edges: Tensor | None, starts: Tensor, neighbours: Tensor, slope: float
) -> Tensor:
    """`gat_reference`, for queries and keys (nodes, heads) and edges (edges, heads)."""
    given = [queries, keys] if edges is None else [queries, keys, edges]
    if not _usable(*given):
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
    if not _usable(*given):
        return gatv2_reference(queries, keys, edges, vector, starts, neighbours, slope)
    found: Tensor = _GATv2.apply(queries, keys, edges, vector, starts, neighbours, slope)  # type: ignore[no-untyped-call]
    return found


def nonzero_rows(matrix: Tensor, most: int) -> tuple[Tensor, Tensor, Tensor] | None:
    """The values of a matrix that are not zero, with their columns and where each row begins; None if too many are."""
    if not native.usable(matrix):
        rows, columns = matrix.nonzero(as_tuple=True)
        starts = torch.searchsorted(rows, torch.arange(len(matrix) + 1, device=rows.device))
        return None if len(rows) > most else (starts, columns, matrix[rows, columns])
    starts, columns = (torch.empty(size, dtype=torch.long) for size in (len(matrix) + 1, most))
    values = matrix.new_empty(most)
    (count,) = native.run(
        native.function("nonzero_rows", matrix.dtype),
        matrix.contiguous(),
        starts,
        columns,
        values,
        *matrix.shape,
        most,
        items=1,
        operations=matrix.numel(),
    )
    return None if count < 0 else (starts, columns[:count], values[:count])


def _again(reference: Any, inputs: tuple[Any, ...], grad: Tensor) -> tuple[Tensor | None, ...]:
    """The gradients of a reference's inputs as something that can be differentiated again."""
    wanted = [each for each in inputs if isinstance(each, Tensor) and each.requires_grad]
    found = iter(torch.autograd.grad(reference(*inputs), wanted, grad, create_graph=True))
    return tuple(next(found) if isinstance(each, Tensor) and each.requires_grad else None for each in inputs)


def _zeros(like: Tensor) -> Tensor:
    return torch.zeros_like(like, memory_format=torch.contiguous_format)


class _Read(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, values: Tensor, starts: Tensor, neighbours: Tensor) -> Tensor:
        ctx.save_for_backward(weights, values, starts, neighbours)
        _, heads, dim = values.shape
        out = values.new_empty(len(starts) - 1, heads, dim)
        native.run(
            native.function("gather_forward", values.dtype),
            weights.contiguous(),
            values.contiguous(),
            starts,
            neighbours,
            out,
            heads,
            dim,
            items=len(starts) - 1,
            operations=weights.numel() * dim,
        )
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        weights, values, starts, neighbours = ctx.saved_tensors
        if torch.is_grad_enabled():
            return _again(read_reference, (weights, values, starts, neighbours), grads[0])
        count, heads, dim = values.shape
        of_weights = torch.empty_like(weights, memory_format=torch.contiguous_format)
        of_values = _zeros(values)
        native.run(
            native.function("gather_backward", values.dtype),
            weights.contiguous(),
            values.contiguous(),
            grads[0].contiguous(),
            starts,
            neighbours,
            of_weights,
            of_values,
            len(starts) - 1,
            heads,
            dim,
            items=count,
            operations=2 * weights.numel() * dim,
        )
        return of_weights, of_values, None, None


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
            return _again(gat_reference, (queries, keys, edges, starts, neighbours, ctx.slope), grads[0])
        heads = keys.shape[1]
        of_edges = torch.empty_like(grads[0], memory_format=torch.contiguous_format)
        of_queries, of_keys = (_zeros(each) for each in (queries, keys))
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
            return _again(gatv2_reference, inputs, grads[0])
        count, heads, dim = keys.shape
        nodes = len(starts) - 1
        of_queries, of_keys = (_zeros(each) for each in (queries, keys))
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
