"""Softmax attention over blocks of keys: memory grows with the block, not with the number of keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

Compare = Callable[[Tensor, Sequence[Tensor]], Tensor]
MaskOf = Callable[[slice], Tensor | None]


def online_softmax_reference(
    compare: Compare, mask: MaskOf, query: Tensor, values: Tensor, keys: Sequence[Tensor]
) -> Tensor:
    """The same with all scores at once."""
    scores = compare(query, keys)
    allowed = mask(slice(0, values.shape[-2]))
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -torch.inf)
    empty = (scores == -torch.inf).all(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(empty, 0.0), -1).masked_fill(empty, 0.0)
    return weights @ values


def online_softmax(
    compare: Compare,
    mask: MaskOf,
    query: Tensor,
    values: Tensor,
    keys: Sequence[Tensor],
    parameters: Sequence[Tensor],
    block_size: int,
) -> Tensor:
    """softmax(compare(query, keys)) @ values, without holding scores of more than `block_size` keys.

    Args:
        compare: scores (*batch, queries, block) of the query against blocks of all `keys`.
        mask: bool, broadcastable to (*batch, queries, block), for a slice of the keys; None allows all.
        query: (*batch, queries, query_dim).
        values: (*batch, keys, value_dim).
        keys: tensors with the keys on their second-to-last axis, split into blocks together.
        parameters: other tensors that `compare` needs gradients for.
        block_size: keys per block.

    The backward pass recomputes each block's scores from the saved log-sum-exp (Dao et al. 2022).
    """
    arguments = (compare, mask, block_size, len(keys), query, values, *keys, *parameters)
    context: Tensor = _OnlineSoftmax.apply(*arguments)  # type: ignore[no-untyped-call]
    return context


class _OnlineSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, compare: Compare, mask: MaskOf, block_size: int, num_keys: int, *tensors: Tensor) -> Tensor:
        query, values, keys, _ = _sort(tensors, num_keys)
        exact = torch.promote_types(query.dtype, torch.float32)  # half precision loses digits over many blocks
        maximum = query.new_full((*query.shape[:-1], 1), -torch.inf, dtype=exact)
        total = torch.zeros_like(maximum)
        context = query.new_zeros(*query.shape[:-1], values.shape[-1], dtype=exact)
        for part in _blocks(values.shape[-2], block_size):
            scores = _scores(compare, mask, query, keys, part).to(exact)
            highest = torch.maximum(maximum, scores.amax(-1, keepdim=True))
            safe = highest.masked_fill(highest == -torch.inf, 0.0)  # avoids -inf - -inf in a row that is still empty
            weights = torch.exp(scores - safe)
            decay = torch.exp(maximum - safe)
            total = total * decay + weights.sum(-1, keepdim=True)
            context = context * decay + weights.to(values.dtype) @ values[..., part, :]
            maximum = highest
        nonempty = total > 0
        context = context / torch.where(nonempty, total, 1.0)
        log_total = torch.where(nonempty, maximum + torch.where(nonempty, total, 1.0).log(), torch.inf)
        context = context.to(values.dtype)
        ctx.save_for_backward(context, log_total, *tensors)
        ctx.compare, ctx.mask, ctx.block_size, ctx.num_keys = compare, mask, block_size, num_keys
        # The backward pass runs outside the user's autocast, but must recompute the same scores.
        device = query.device.type
        ctx.autocast = (device, torch.get_autocast_dtype(device), torch.is_autocast_enabled(device))
        return context

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        context, log_total, *tensors = ctx.saved_tensors
        query, values, keys, parameters = _sort(tensors, ctx.num_keys)
        needed = ctx.needs_input_grad[4:]
        gradients = [torch.zeros_like(t) if need else None for t, need in zip(tensors, needed, strict=True)]
        row = (grad * context).sum(-1, keepdim=True)
        for part in _blocks(values.shape[-2], ctx.block_size):
            with torch.enable_grad(), torch.autocast(*ctx.autocast):
                leaf = query.detach().requires_grad_()
                leaves = [key[..., part, :].detach().requires_grad_(key.is_floating_point()) for key in keys]
                scores = ctx.compare(leaf, leaves)
            allowed = ctx.mask(part)
            visible = scores.detach() if allowed is None else scores.detach().masked_fill(~allowed, -torch.inf)
            weights = torch.exp(visible.to(log_total.dtype) - log_total)
            block = values[..., part, :]
            if gradients[1] is not None:
                gradients[1][..., part, :] = weights.to(grad.dtype).transpose(-1, -2) @ grad
            towards = weights * (grad @ block.transpose(-1, -2) - row)
            inputs = [leaf, *leaves, *parameters]
            wanted = [i for i, tensor in enumerate(inputs) if tensor.requires_grad]
            found = torch.autograd.grad(
                scores, [inputs[i] for i in wanted], towards.to(scores.dtype), allow_unused=True
            )
            for i, gradient in zip(wanted, found, strict=True):
                slot = 0 if i == 0 else i + 1  # the values come between the query and the keys
                target = gradients[slot]
                if target is None or gradient is None:
                    continue
                if 0 < i <= len(keys):
                    target[..., part, :] = gradient
                else:
                    target += gradient
        return (None, None, None, None, *gradients)


def _sort(tensors: Sequence[Tensor], num_keys: int) -> tuple[Tensor, Tensor, Sequence[Tensor], Sequence[Tensor]]:
    return tensors[0], tensors[1], tensors[2 : 2 + num_keys], tensors[2 + num_keys :]


def _blocks(keys: int, size: int) -> Iterator[slice]:
    for start in range(0, keys, size):
        yield slice(start, min(start + size, keys))


def _scores(compare: Compare, mask: MaskOf, query: Tensor, keys: Sequence[Tensor], part: slice) -> Tensor:
    scores = compare(query, [key[..., part, :] for key in keys])
    allowed = mask(part)
    return scores if allowed is None else scores.masked_fill(~allowed, -torch.inf)
