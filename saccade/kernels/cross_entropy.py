"""The cross-entropy of a linear output layer without the (rows, vocab) logits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from saccade.kernels import native

CHUNK = 4 * 1024 * 1024
"""Number of logits held at once, so that they stay in the processor's cache until they become gradients."""


class CrossEntropy(NamedTuple):
    """The sum over the rows, and how many of them have the target as their most likely class."""

    total: Tensor
    right: Tensor
    plain: Tensor
    """The sum without smoothing, and without a gradient."""


def cross_entropy(
    logits: Float[Tensor, "n v"], targets: Int[Tensor, " n"], *, smoothing: float = 0.0, first: int = 0
) -> CrossEntropy:
    r"""The sum over rows of the cross-entropy with smoothed targets.

    .. math:: (1 - s) (-\log p_t) + s \, \operatorname{mean}_{j \ge f} (-\log p_j)

    Args:
        logits: the logits of all classes.
        targets: the target class t of each row.
        smoothing: s, the probability spread evenly over all classes from `first` on.
        first: f, the first class that can be a target.
    """
    log_probs = logits.float().log_softmax(dim=-1)
    total = plain = F.nll_loss(log_probs, targets, reduction="sum")
    if smoothing:
        alike = -log_probs[:, first:].mean(dim=-1).sum()
        total = (1.0 - smoothing) * total + smoothing * alike
    return CrossEntropy(total, (logits.detach().argmax(dim=-1) == targets).sum(), plain.detach())


def linear_cross_entropy(
    features: Float[Tensor, "n d"],
    weight: Float[Tensor, "v d"],
    bias: Float[Tensor, " v"] | None,
    targets: Int[Tensor, " n"],
    *,
    smoothing: float = 0.0,
    first: int = 0,
) -> CrossEntropy:
    """`cross_entropy` of features @ weight^T + bias, turning one chunk of logits at a time into its gradient."""
    given = (features, weight) if bias is None else (features, weight, bias)
    fused = (
        native.usable(*given)
        and len({tensor.dtype for tensor in given}) == 1
        and not torch.is_autocast_enabled(features.device.type)
        and features.numel() > 0
        and 0 <= first < len(weight)
    )
    if not fused:
        return cross_entropy(F.linear(features, weight, bias), targets, smoothing=smoothing, first=first)
    derive = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in given)
    apply: Callable[..., tuple[Tensor, Tensor, Tensor]] = _LinearCrossEntropy.apply
    return CrossEntropy(*apply(features, weight, bias, targets, smoothing, first, derive))


Gradients = tuple[Tensor, Tensor, Tensor | None]
"""Of the features, the weight and the bias."""


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        smoothing: float,
        first: int,
        derive: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:
        ctx.save_for_backward(features, weight, bias, targets)
        ctx.smoothing, ctx.first = smoothing, first
        losses, plain, right, ctx.grads = _in_chunks(features, weight, bias, targets, smoothing, first, derive)
        right_count, plain_sum = right.sum(), plain.sum()
        ctx.mark_non_differentiable(right_count, plain_sum)
        return losses.sum(), right_count, plain_sum

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        # They are as large as the parameters, so they are scaled in place and handed over. Only a graph that was
        # retained needs them again.
        grads: Gradients | None = ctx.grads
        ctx.grads = None
        if grads is None:
            features, weight, bias, targets = ctx.saved_tensors
            grads = _in_chunks(features, weight, bias, targets, ctx.smoothing, ctx.first, True)[-1]
        assert grads is not None
        return (*(None if own is None else own.mul_(grad) for own in grads), None, None, None, None)


def _in_chunks(
    features: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    smoothing: float,
    first: int,
    derive: bool,
) -> tuple[Tensor, Tensor, Tensor, Gradients | None]:
    """The loss of each row, that without smoothing, whether the row is right, and, if wanted, the gradients."""
    count, vocab = len(features), len(weight)
    if int(targets.min()) < 0 or int(targets.max()) >= vocab:
        raise IndexError(f"targets must be from 0 to {vocab - 1}, got {targets.min()} to {targets.max()}.")
    chunks = min(count, math.ceil(count * vocab / CHUNK))
    rows = math.ceil(count / chunks)  # chunks of equal size
    logits = features.new_empty(rows, vocab)
    losses, plain = features.new_empty(count), features.new_empty(count)
    right = torch.empty(count, dtype=torch.int32)
    blocks = native.count("cross_entropy_items", features.dtype, rows)
    sums = features.new_empty(blocks, vocab) if derive and bias is not None else None
    kernel = native.function("cross_entropy", features.dtype)
    grads: Gradients | None = None
    if derive:
        of_bias = None if bias is None else torch.zeros_like(bias)
        grads = torch.empty_like(features), torch.empty_like(weight), of_bias
    for start in range(0, count, rows):
        part = features[start : start + rows]
        made = logits[: len(part)]
        torch.mm(part, weight.T, out=made)
        items = native.count("cross_entropy_items", features.dtype, len(part))
        native.run(
            kernel,
            made,
            None if bias is None else bias.contiguous(),
            targets[start : start + rows].contiguous(),
            float(smoothing),
            first,
            len(part),
            vocab,
            int(derive),
            losses[start : start + rows],
            plain[start : start + rows],
            right[start : start + rows],
            sums,
            items=items,
            operations=made.numel(),
        )
        if grads is not None:
            of_features, of_weight, of_bias = grads
            torch.mm(made, weight, out=of_features[start : start + rows])
            torch.addmm(of_weight, made.T, part, beta=float(start > 0), out=of_weight)
            if of_bias is not None and sums is not None:
                of_bias += sums[:items].sum(0)
    return losses, plain, right, grads
