"""A loss of a linear output layer that needs little of each row's logits, without the (rows, vocab) logits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from saccade.kernels.picked_logits import Picked, chunks, linear

Part = Callable[[slice, Picked, Sequence[Tensor]], Tensor]
"""Maps some rows, what is picked of their logits, and their part of each other tensor to the sum of their losses."""


def chunked_loss(
    features: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    picks: Tensor,
    rows: Sequence[Tensor],
    parameters: Sequence[Tensor],
    part: Part,
) -> Tensor:
    """The sum of `part` over all rows; each chunk of logits becomes its gradient while it is in the cache.

    Args:
        features: (rows, dim).
        weight, bias: of the output layer, (vocab, dim) and (vocab,).
        picks: (rows, k), the classes whose logits `part` needs.
        rows: other tensors (rows, ...) that the loss depends on.
        parameters: tensors that `part` uses as they are.
        part: see `Part`; it may note other results, and is called once for each chunk, in order.
    """
    given = [features, weight, *([] if bias is None else [bias]), *rows, *parameters]
    derive = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in given)
    apply: Callable[..., Tensor] = _ChunkedLoss.apply
    return apply(part, derive, len(rows), picks, features, weight, bias, *rows, *parameters)


class _ChunkedLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        part: Part,
        derive: bool,
        count: int,
        picks: Tensor,
        features: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        *others: Tensor,
    ) -> Tensor:
        rows, parameters = others[:count], [each for each in others[count:] if each.requires_grad]
        grads: list[Tensor | None] = [None] * (3 + len(others))
        if derive:
            grads[:2] = torch.empty_like(features), torch.zeros_like(weight)
            grads[2] = None if bias is None else torch.zeros_like(bias)
            grads[3:] = [torch.zeros_like(each) if each.requires_grad else None for each in others]
        total = features.new_zeros(())
        for chosen in chunks(len(features), len(weight)):
            logits = linear(features[chosen], weight, bias)
            picked = logits.gather(1, picks[chosen])
            highest = logits.amax(1)
            sums = logits.sub_(highest.unsqueeze(1)).exp_().sum(1)
            leaves = [sums.log() + highest, picked, *(each[chosen] for each in rows)]
            with torch.set_grad_enabled(derive):
                leaves = [leaf.detach().requires_grad_(derive and leaf.is_floating_point()) for leaf in leaves]
                loss = part(chosen, Picked(leaves[0], leaves[1], highest), leaves[2:])
            total += loss.detach()
            if not derive:
                continue
            wanted = [leaf for leaf in leaves if leaf.requires_grad]
            found = iter(torch.autograd.grad(loss, [*wanted, *parameters], allow_unused=True))
            of_leaves = [next(found) if leaf.requires_grad else None for leaf in leaves]
            of_total, of_picked = of_leaves[:2]
            assert of_total is not None
            of_logits = logits.mul_((of_total / sums).unsqueeze(1))
            if of_picked is not None:
                of_logits.scatter_add_(1, picks[chosen], of_picked)
            of_features, of_weight, of_bias, *_ = grads
            assert of_features is not None
            assert of_weight is not None
            torch.mm(of_logits, weight, out=of_features[chosen])
            of_weight.addmm_(of_logits.T, features[chosen])
            if of_bias is not None:
                of_bias += of_logits.sum(0)
            for place, own in enumerate(of_leaves[2:], start=3):
                target = grads[place]
                if own is not None and target is not None:
                    target[chosen] = own
            kept = [each for each in grads[3 + count :] if each is not None]
            for target, own in zip(kept, found, strict=True):
                if own is not None:
                    target += own
        ctx.grads = grads
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return (None, None, None, None, *(None if own is None else own * grad for own in ctx.grads))
