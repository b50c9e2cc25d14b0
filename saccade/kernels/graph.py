"""Reading neighbours: each node gathers the values of its neighbours, times their weights.

Node i attends to `neighbours[starts[i]:starts[i + 1]]`. Features are (nodes, heads, dim), what belongs to an edge is
(edges, heads). The kernels do not copy the features for each edge, which is what makes plain operators slow.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from saccade.kernels import native
from saccade.kernels.segments import rows_of


def read_reference(weights: Tensor, values: Tensor, starts: Tensor, neighbours: Tensor) -> Tensor:
    """Gathers, multiplies and scatters, by plain operators."""
    found = weights.unsqueeze(-1) * values[neighbours]
    return values.new_zeros(len(starts) - 1, *values.shape[1:]).index_add(0, rows_of(starts, len(neighbours)), found)


def usable(*tensors: Tensor) -> bool:
    """Whether a kernel can read them: all have the same type, which plain operators would promote to."""
    return native.usable(*tensors) and len({each.dtype for each in tensors}) == 1


def read_neighbours(weights: Tensor, values: Tensor, starts: Tensor, neighbours: Tensor) -> Tensor:
    """What each node reads: the sum of its neighbours' values (nodes, heads, dim), times weights (edges, heads)."""
    if not usable(weights, values):
        return read_reference(weights, values, starts, neighbours)
    found: Tensor = _Read.apply(weights, values, starts, neighbours)  # type: ignore[no-untyped-call]
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


def again(reference: Any, inputs: tuple[Any, ...], grad: Tensor) -> tuple[Tensor | None, ...]:
    """The gradients of a reference's inputs as something that can be differentiated again."""
    wanted = [each for each in inputs if isinstance(each, Tensor) and each.requires_grad]
    found = iter(torch.autograd.grad(reference(*inputs), wanted, grad, create_graph=True))
    return tuple(next(found) if isinstance(each, Tensor) and each.requires_grad else None for each in inputs)


def zeros(like: Tensor) -> Tensor:
    """Zeros of its shape and type, one row after another."""
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
            return again(read_reference, (weights, values, starts, neighbours), grads[0])
        count, heads, dim = values.shape
        of_weights = torch.empty_like(weights, memory_format=torch.contiguous_format)
        of_values = zeros(values)
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
