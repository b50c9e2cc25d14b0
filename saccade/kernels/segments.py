"""Softmax, sparsemax and entmax-1.5 over segments: the neighbours of a node, the nodes of a graph."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from saccade.kernels import native
from saccade.kernels.finite import NotFiniteError
from saccade.kernels.sparse import MAPPINGS as SPARSE

MAPPINGS = ("softmax", "sparsemax", "entmax15")


def rows_of(starts: Tensor, count: int) -> Tensor:
    """(count,): the segment of each entry."""
    return torch.repeat_interleave(
        torch.arange(len(starts) - 1, device=starts.device), starts.diff(), output_size=count
    )


def check_starts(starts: Tensor, count: int) -> None:
    """Raises `ValueError` unless they are starts of segments of these entries: kernels address memory by them."""
    if starts.dim() != 1 or starts.dtype != torch.long or not len(starts):
        raise ValueError(f"starts must be int64 (segments + 1,), got {starts.dtype} {tuple(starts.shape)}.")
    if int(starts[0]) != 0 or int(starts[-1]) != count or bool((starts.diff() < 0).any()):
        raise ValueError(f"starts must rise from 0 to the number of entries, {count}.")


def segment_reference(scores: Tensor, starts: Tensor, mapping: str) -> Tensor:
    """The weights by plain operators; the sparse mappings pad the segments to the longest."""
    segments, rows = len(starts) - 1, rows_of(starts, len(scores))
    if not len(scores):
        return scores.clone()
    if mapping == "softmax":
        index = rows.unsqueeze(-1).expand_as(scores)
        lowest = scores.new_full((segments, scores.shape[1]), -torch.inf)
        top = lowest.scatter_reduce(0, index, scores.detach(), "amax")
        powers = (scores - top[rows]).exp()
        return powers / scores.new_zeros(segments, scores.shape[1]).index_add(0, rows, powers)[rows]
    places = torch.arange(len(scores), device=scores.device) - starts[rows]
    longest = int(starts.diff().max())
    padded = scores.new_zeros(segments, longest, scores.shape[1]).index_put((rows, places), scores).transpose(1, 2)
    mask = torch.arange(longest, device=scores.device) < starts.diff().unsqueeze(1)
    return SPARSE[mapping].reference(padded, mask.unsqueeze(1)).transpose(1, 2)[rows, places]


def segment_gradient(weights: Tensor, grad: Tensor, starts: Tensor, mapping: str) -> Tensor:
    """s (g - sum s g / sum s) in each segment; s is the weight, 1 on the support (sparsemax), its root (entmax-1.5)."""
    support = weights > 0
    slopes = {
        "softmax": lambda: weights,
        "sparsemax": lambda: support.to(grad.dtype),
        "entmax15": lambda: torch.where(support, torch.where(support, weights, 1.0).sqrt(), 0.0),
    }[mapping]()
    rows, nothing = rows_of(starts, len(weights)), weights.new_zeros(len(starts) - 1, weights.shape[1])
    total = nothing.index_add(0, rows, slopes)
    mean = nothing.index_add(0, rows, slopes * grad) / torch.where(total > 0, total, 1.0)
    return slopes * (grad - mean[rows])


def segment_weights(scores: Tensor, starts: Tensor, mapping: str) -> Tensor:
    """Normalises each segment of scores (entries, heads), for each head; see `saccade.selections.segment_softmax`.

    Args:
        scores: float32 or float64 where a kernel is to be used.
        starts: int64 (segments + 1,): where each segment begins, and where the last one ends.
        mapping: one of `MAPPINGS`.

    Raises `NotFiniteError` if the kernel finds a score that is not finite.
    """
    if not native.usable(scores):
        return segment_reference(scores, starts, mapping)
    weights: Tensor = _Segments.apply(scores, starts, mapping)  # type: ignore[no-untyped-call]
    return weights


class _Segments(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, starts: Tensor, mapping: str) -> Tensor:
        weights = _forward(scores, starts, mapping)
        ctx.save_for_backward(weights, starts)
        ctx.mapping = mapping
        return weights

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        weights, starts = ctx.saved_tensors
        if torch.is_grad_enabled():  # may be differentiated again, through the weights
            return segment_gradient(weights, grads[0], starts, ctx.mapping), None, None
        return _backward(weights, grads[0], starts, ctx.mapping), None, None


def _forward(scores: Tensor, starts: Tensor, mapping: str) -> Tensor:
    scores = scores.contiguous()
    weights = torch.empty_like(scores)
    results = native.run(
        native.function("segment_forward", scores.dtype),
        scores,
        starts,
        weights,
        scores.shape[1],
        MAPPINGS.index(mapping),
        items=len(starts) - 1,
        operations=10 * scores.numel(),
    )
    if min(results) < 0:
        raise MemoryError(f"out of memory for {mapping} over segments.")
    if any(results):
        raise NotFiniteError("scores must be finite.")
    return weights


def _backward(weights: Tensor, grad: Tensor, starts: Tensor, mapping: str) -> Tensor:
    out = torch.empty_like(weights)
    results = native.run(
        native.function("segment_backward", weights.dtype),
        weights,
        grad.contiguous(),
        starts,
        out,
        weights.shape[1],
        MAPPINGS.index(mapping),
        items=len(starts) - 1,
        operations=5 * weights.numel(),
    )
    if any(results):
        raise MemoryError(f"out of memory for the gradient of {mapping} over segments.")
    return out
