"""Selections over segments of different lengths, without padding: the neighbours of each node of a graph."""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.kernels.segments import check_starts, segment_weights


def segment_softmax(scores: Tensor, starts: Tensor) -> Tensor:
    """Softmax of each segment of scores.

    Shapes:
        scores (entries,) or (entries, heads), starts int64 (segments + 1,): segment i is the entries from starts[i] to
        starts[i + 1] -> weights of the same shape as the scores. A segment may be empty.
    """
    return _selected(scores, starts, "softmax")


def segment_sparsemax(scores: Tensor, starts: Tensor) -> Tensor:
    """Sparsemax of each segment of scores; shapes as for `segment_softmax`."""
    return _selected(scores, starts, "sparsemax")


def segment_entmax15(scores: Tensor, starts: Tensor) -> Tensor:
    """Entmax-1.5 of each segment of scores; shapes as for `segment_softmax`."""
    return _selected(scores, starts, "entmax15")


def _selected(scores: Tensor, starts: Tensor, mapping: str) -> Tensor:
    if scores.dim() not in (1, 2) or not scores.is_floating_point():
        raise ValueError(f"scores must be real numbers (entries,) or (entries, heads), got {tuple(scores.shape)}.")
    check_starts(starts, len(scores))
    exact = scores.to(torch.promote_types(scores.dtype, torch.float32))
    weights = segment_weights(exact.reshape(len(scores), -1), starts.contiguous(), mapping)
    return weights.view(scores.shape).to(scores.dtype)
