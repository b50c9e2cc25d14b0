"""Additive scores without the (batch, queries, keys, hidden) tensor."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.kernels import native
from saccade.kernels.modes import plain_only, recording

CHUNK = 512 * 1024
"""Number of tanh elements that the plain path holds at once, so that they stay in the processor's cache."""


def additive_scores_reference(
    query: Float[Tensor, "*b q h"], keys: Float[Tensor, "*b k h"], vector: Float[Tensor, " h"]
) -> Float[Tensor, "*b q k"]:
    """The plain equation: v . tanh(query_i + key_j), with a (*batch, queries, keys, hidden) tensor."""
    return (query.unsqueeze(-2) + keys.unsqueeze(-3)).tanh() @ vector


def additive_scores(
    query: Float[Tensor, "*b q h"], keys: Float[Tensor, "*b k h"], vector: Float[Tensor, " h"]
) -> Float[Tensor, "*b q k"]:
    """`additive_scores_reference` by the fastest available path; memory grows only with queries * keys.

    Batch dimensions of query and keys broadcast. In bfloat16 and float16 the sum is taken in float32.
    """
    if plain_only():
        return additive_scores_reference(query, keys, vector)
    if query.dtype != keys.dtype or query.dtype != vector.dtype or query.dtype not in (torch.float32, torch.float64):
        dtype = torch.promote_types(torch.promote_types(query.dtype, keys.dtype), vector.dtype)
        exact = torch.promote_types(dtype, torch.float32)
        return additive_scores(query.to(exact), keys.to(exact), vector.to(exact)).to(dtype)
    batch = query.shape[:-2]
    if batch != keys.shape[:-2]:
        batch = torch.broadcast_shapes(batch, keys.shape[:-2])
    apply: Callable[..., Tensor] = compiled_scores if recording() else _AdditiveScores.apply
    scores = apply(_flatten(query, batch), _flatten(keys, batch), vector)
    return scores if len(batch) == 1 else scores.view(*batch, *scores.shape[1:])


def _flatten(tensor: Tensor, batch: torch.Size) -> Tensor:
    if len(batch) == 1 and tensor.shape[:-2] == batch:  # the usual case; each view would cost microseconds
        return tensor
    return tensor.expand(*batch, *tensor.shape[-2:]).reshape(batch.numel(), *tensor.shape[-2:])


class _AdditiveScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, keys: Tensor, vector: Tensor) -> Tensor:
        ctx.save_for_backward(query, keys, vector)
        return forward(query, keys, vector)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, ...]:
        derive = differentiable_backward if torch.is_grad_enabled() else backward
        return derive(grads[0], *ctx.saved_tensors)


def forward(query: Tensor, keys: Tensor, vector: Tensor) -> Tensor:
    """Scores (batch, queries, keys) of query (batch, queries, hidden) and keys (batch, keys, hidden)."""
    batch, queries, hidden = query.shape
    out = query.new_empty(batch, queries, keys.shape[1])
    if native.usable(query, keys, vector):
        keys = _rows_together(keys)
        native.run(
            native.function("additive_forward", query.dtype),
            query.contiguous(),
            keys,
            vector.contiguous(),
            out,
            queries,
            keys.shape[1],
            hidden,
            keys.stride(0),
            items=native.count("additive_forward_items", query.dtype, batch, queries),
            operations=out.numel() * hidden,
        )
        return out
    for rows, part in _chunks(query, keys):
        torch.matmul(_tanh(query[rows, part], keys[rows]), vector, out=out[rows, part])
    return out


def backward(grad: Tensor, query: Tensor, keys: Tensor, vector: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of query, keys and vector; tanh is recomputed rather than stored."""
    batch, queries, hidden = query.shape
    if native.usable(grad, query, keys, vector):
        # The kernel expects contiguous rows, whatever the layout of the inputs.
        grad_query, grad_keys = query.new_empty(query.shape), keys.new_empty(keys.shape)
        grad_vector = vector.new_empty(batch, hidden)
        keys = _rows_together(keys)
        native.run(
            native.function("additive_backward", query.dtype),
            query.contiguous(),
            keys,
            vector.contiguous(),
            grad.contiguous(),
            grad_query,
            grad_keys,
            grad_vector,
            queries,
            keys.shape[1],
            hidden,
            keys.stride(0),
            items=native.count("additive_backward_items", query.dtype, batch, queries, hidden),
            operations=grad.numel() * hidden,
        )
        return grad_query, grad_keys, grad_vector.sum(0)
    grad_query, grad_keys, grad_vector = torch.zeros_like(query), torch.zeros_like(keys), torch.zeros_like(vector)
    for rows, part in _chunks(query, keys):
        tanh, weight = _tanh(query[rows, part], keys[rows]), grad[rows, part]
        grad_vector += weight.reshape(-1) @ tanh.reshape(-1, hidden)
        slope = tanh.square_().neg_().add_(1.0).mul_(weight.unsqueeze(-1))
        grad_query[rows, part] = slope.sum(2).mul_(vector)
        grad_keys[rows] += slope.sum(1).mul_(vector)
    return grad_query, grad_keys, grad_vector


def differentiable_backward(grad: Tensor, query: Tensor, keys: Tensor, vector: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """`backward` in differentiable operations."""
    tanh = (query.unsqueeze(-2) + keys.unsqueeze(-3)).tanh()
    slope = (1.0 - tanh * tanh) * grad.unsqueeze(-1) * vector
    return slope.sum(2), slope.sum(1), (grad.unsqueeze(-1) * tanh).sum((0, 1, 2))


def _rows_together(keys: Tensor) -> Tensor:
    """Keys (batch, keys, hidden) that are contiguous in each batch row, as the first keys of a longer memory are."""
    return keys if keys.stride()[1:] == (keys.shape[2], 1) else keys.contiguous()


def _chunks(query: Tensor, keys: Tensor) -> list[tuple[slice, slice]]:
    """Slices of batch rows and of queries whose pairs with all keys have about CHUNK hidden units."""
    batch, queries, hidden = query.shape
    pairs = max(1, CHUNK // max(1, keys.shape[1] * hidden))
    rows, part = max(1, pairs // max(1, queries)), min(max(1, queries), pairs)
    return [(slice(b, b + rows), slice(q, q + part)) for b in range(0, batch, rows) for q in range(0, queries, part)]


def _tanh(query: Tensor, keys: Tensor) -> Tensor:
    return (query.unsqueeze(-2) + keys.unsqueeze(-3)).tanh_()


# Compiled code cannot trace ctypes: it calls these equivalent operators.


@torch.library.custom_op("saccade::additive_scores", mutates_args=())
def compiled_scores(query: Tensor, keys: Tensor, vector: Tensor) -> Tensor:
    """`forward` as an operator."""
    return forward(query, keys, vector)


@torch.library.custom_op("saccade::additive_scores_backward", mutates_args=())
def compiled_backward(grad: Tensor, query: Tensor, keys: Tensor, vector: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """`backward` as an operator."""
    return backward(grad, query, keys, vector)


@compiled_scores.register_fake
def _(query: Tensor, keys: Tensor, vector: Tensor) -> Tensor:
    return query.new_empty(query.shape[0], query.shape[1], keys.shape[1])


@compiled_backward.register_fake
def _(grad: Tensor, query: Tensor, keys: Tensor, vector: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return query.new_empty(query.shape), keys.new_empty(keys.shape), vector.new_empty(vector.shape)


def _save(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _derive(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
    gradients: tuple[Tensor, ...] = compiled_backward(grad, *ctx.saved_tensors)
    return gradients


compiled_scores.register_autograd(_derive, setup_context=_save)
