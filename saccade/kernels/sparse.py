"""Sparsemax and entmax-1.5 of the last axis, exact and without a sort."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from saccade.kernels import native
from saccade.kernels.finite import NotFiniteError
from saccade.kernels.modes import plain_only, recording


def sparsemax_reference(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Sorts the scores and finds the largest valid support (Martins and Astudillo 2016)."""
    if scores.shape[-1] == 0:
        return scores.clone()
    x, keep = _shifted(scores, mask)
    ordered = x.sort(dim=-1, descending=True).values
    rank = _rank(ordered)
    size = (1.0 + rank * ordered > ordered.cumsum(-1)).sum(-1, keepdim=True).clamp(min=1)
    tau = (ordered.cumsum(-1).gather(-1, size - 1) - 1.0) / size
    return _restrict((x - tau).clamp(min=0.0), keep)


def entmax15_reference(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Sorts the scores and solves the quadratic equation of each possible support (Peters et al. 2019)."""
    if scores.shape[-1] == 0:
        return scores.clone()
    x, keep = _shifted(scores, mask)
    x = x / 2.0
    # Scores 2 below the largest have no weight; without them the sums below keep their precision.
    ordered = x.clamp(min=-1.0).sort(dim=-1, descending=True).values
    rank = _rank(ordered)
    mean, mean_square = ordered.cumsum(-1) / rank, ordered.square().cumsum(-1) / rank
    spread = rank * (mean_square - mean.square())
    squared_radius = (1.0 - spread) / rank
    fits = mean - squared_radius.detach().clamp(min=0.0).sqrt() <= ordered
    last = fits.sum(-1, keepdim=True).clamp(min=1) - 1
    # Only take the square root for this support: for a larger one it may be that of zero, with an infinite gradient.
    tau = mean.gather(-1, last) - squared_radius.gather(-1, last).sqrt()
    return _restrict((x - tau).clamp(min=0.0).square(), keep)


def sparsemax_gradient(weights: Tensor, grad: Tensor) -> Tensor:
    """On the support, the gradient minus its mean there."""
    support = (weights > 0).to(grad.dtype)
    mean = (support * grad).sum(-1, keepdim=True) / support.sum(-1, keepdim=True).clamp(min=1.0)
    return support * (grad - mean)


def entmax15_gradient(weights: Tensor, grad: Tensor) -> Tensor:
    """Like sparsemax, but with positions weighted by the square root of their weight."""
    support = weights > 0
    root = torch.where(support, torch.where(support, weights, 1.0).sqrt(), 0.0)
    total = root.sum(-1, keepdim=True)
    mean = (root * grad).sum(-1, keepdim=True) / torch.where(total > 0, total, 1.0)
    return root * (grad - mean)


class _Mapping(NamedTuple):
    reference: Callable[[Tensor, Tensor | None], Tensor]
    gradient: Callable[[Tensor, Tensor], Tensor]


MAPPINGS = {
    "sparsemax": _Mapping(sparsemax_reference, sparsemax_gradient),
    "entmax15": _Mapping(entmax15_reference, entmax15_gradient),
}


def normalise(scores: Tensor, mask: Tensor | None, mapping: str) -> Tensor:
    """Applies the mapping to the last axis; mask (broadcastable to scores, True = may have weight).

    Raises NotFiniteError if a score that may have weight is found not to be finite.
    """
    exact = scores.to(torch.promote_types(scores.dtype, torch.float32))
    if plain_only():
        # Plain operators only; differentiating through the sort gives the gradient of the mapping.
        return MAPPINGS[mapping].reference(exact, mask).to(scores.dtype)
    apply: Callable[..., Tensor] = compiled_normalise if recording() else _Normalise.apply
    return apply(exact, mask, mapping).to(scores.dtype)


class _Normalise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, mask: Tensor | None, mapping: str) -> Tensor:
        weights = forward(scores, mask, mapping)
        ctx.save_for_backward(weights)
        ctx.mapping = mapping
        return weights

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (weights,) = ctx.saved_tensors
        if torch.is_grad_enabled():  # may be differentiated again, through the weights
            return MAPPINGS[ctx.mapping].gradient(weights, grads[0]), None, None
        return backward(weights, grads[0], ctx.mapping), None, None


def forward(scores: Tensor, mask: Tensor | None, mapping: str) -> Tensor:
    """The weights, by the native kernel if available."""
    if not native.usable(scores):
        return MAPPINGS[mapping].reference(scores, mask)
    scores = scores.contiguous()
    size = scores.shape[-1]
    weights = torch.empty_like(scores)
    results = native.run(
        native.function(mapping + "_forward", scores.dtype),
        scores,
        None if mask is None or _all_true(mask) else mask.expand(scores.shape).contiguous(),
        weights,
        size,
        items=scores.numel() // size if size else 0,
        operations=3 * scores.numel(),
    )
    if min(results) < 0:
        raise MemoryError(f"out of memory for {mapping} of rows of size {size}.")
    if any(results):
        raise NotFiniteError("scores must be finite where the mask allows attention.")
    return weights


def backward(weights: Tensor, grad: Tensor, mapping: str) -> Tensor:
    """The gradient of the scores, from the weights."""
    if not native.usable(weights, grad):
        return MAPPINGS[mapping].gradient(weights, grad)
    size = weights.shape[-1]
    out = weights.new_empty(weights.shape)
    native.run(
        native.function(mapping + "_backward", weights.dtype),
        weights.contiguous(),
        grad.contiguous(),
        out,
        size,
        items=weights.numel() // size if size else 0,
        operations=2 * weights.numel(),
    )
    return out


def _all_true(mask: Tensor) -> bool:
    """Whether the mask is a single True, expanded, which is how a selection sees a missing mask."""
    return mask.numel() > 0 and not any(mask.stride()) and bool(mask[(0,) * mask.dim()])


def _shifted(scores: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Scores minus the largest, and far below it where they are masked; the mask expanded."""
    if mask is None:
        return scores - scores.detach().amax(-1, keepdim=True), None
    keep = mask.expand(scores.shape)
    kept = torch.where(keep, scores, torch.finfo(scores.dtype).min / 4)
    top = torch.where(keep.any(-1, keepdim=True), kept.detach().amax(-1, keepdim=True), 0.0)
    # Scores two below the largest have no weight in either mapping; being so close, the running sums stay precise.
    return torch.where(keep, scores - top, -4.0), keep


def _restrict(weights: Tensor, keep: Tensor | None) -> Tensor:
    return weights if keep is None else torch.where(keep, weights, 0.0)


def _rank(ordered: Tensor) -> Tensor:
    return torch.arange(1, ordered.shape[-1] + 1, dtype=ordered.dtype, device=ordered.device)


# Compiled code cannot trace ctypes: it calls these equivalent operators.


@torch.library.custom_op("saccade::normalise", mutates_args=())
def compiled_normalise(scores: Tensor, mask: Tensor | None, mapping: str) -> Tensor:
    """`forward` as an operator."""
    return forward(scores, mask, mapping)


@torch.library.custom_op("saccade::normalise_backward", mutates_args=())
def compiled_backward(weights: Tensor, grad: Tensor, mapping: str) -> Tensor:
    """`backward` as an operator."""
    return backward(weights, grad, mapping)


@compiled_normalise.register_fake
def _(scores: Tensor, mask: Tensor | None, mapping: str) -> Tensor:
    return scores.new_empty(scores.shape)


@compiled_backward.register_fake
def _(weights: Tensor, grad: Tensor, mapping: str) -> Tensor:
    return weights.new_empty(weights.shape)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(output)
    ctx.mapping = inputs[2]


def _derive(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
    return compiled_backward(ctx.saved_tensors[0], grad, ctx.mapping), None, None


compiled_normalise.register_autograd(_derive, setup_context=_save)
