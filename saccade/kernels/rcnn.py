"""All steps of recurrent convolutional units in C; the plain form is `rcnn_sequence` in saccade/layers/rcnn.py."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from saccade.kernels import native

ALIGNED = 64
"""Bytes that the features of a state must fill: whole vectors on every processor."""


class RCNNStates(NamedTuple):
    """What the backward pass needs: the states, with those before the first step, the gates, and all new outputs."""

    states: Tensor
    singles: Tensor
    pairs: Tensor
    gates: Tensor
    news: Tensor


def usable(projected: Tensor, hidden: Tensor, weight: Tensor, kept: Tensor | None = None) -> bool:
    """Whether there is a kernel for these tensors: it takes a matrix for each group of rows, and broadcasts nothing."""
    return (
        projected.dtype == weight.dtype
        and hidden.dim() >= 2
        and weight.shape[:-2] == hidden.shape[:-2]
        and (kept is None or kept.shape == (*projected.shape[:-1], 1))
        and projected.numel() > 0
        and weight.shape[-1] * weight.element_size() % ALIGNED == 0
        and native.usable(projected, weight)
    )


def forward(
    projected: Tensor, hidden: Tensor, single: Tensor, pair: Tensor, weight: Tensor, bias: Tensor, kept: Tensor | None
) -> RCNNStates:
    """All steps of projected (steps, *batch, 3 * hidden); call it only if `usable`."""
    steps, size = len(projected), weight.shape[-1]
    states, singles, pairs = (projected.new_empty(steps + 1, *hidden.shape) for _ in range(3))
    states[0], singles[0], pairs[0] = hidden, single, pair
    gates, news = torch.empty_like(states[1:]), torch.empty_like(states[1:])
    rows = hidden.numel() // size
    native.run(
        native.function("rcnn_forward", projected.dtype),
        projected.contiguous(),
        weight.mT.contiguous(),
        bias.expand_as(hidden).contiguous(),
        None if kept is None else kept.contiguous(),
        states,
        singles,
        pairs,
        gates,
        news,
        steps,
        rows,
        hidden.shape[-2],
        size,
        items=rows,
        operations=gates.numel() * size,
    )
    return RCNNStates(states, singles, pairs, gates, news)


def backward(
    projected: Tensor, run: RCNNStates, weight: Tensor, kept: Tensor | None, grads: tuple[Tensor, Tensor, Tensor]
) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor], Tensor, Tensor | None]:
    """The gradients of projected, the states before the first step, the bias of each row, and kept."""
    inputs = torch.empty_like(projected, memory_format=torch.contiguous_format)
    hidden, single, pair, of_bias = (torch.zeros_like(run.states[0]) for _ in range(4))
    of_kept = None if kept is None else torch.empty_like(kept, memory_format=torch.contiguous_format)
    size = weight.shape[-1]
    rows = hidden.numel() // size
    native.run(
        native.function("rcnn_backward", projected.dtype),
        projected.contiguous(),
        weight.contiguous(),
        None if kept is None else kept.contiguous(),
        *run,
        *(each.contiguous() for each in grads),
        inputs,
        hidden,
        single,
        pair,
        of_bias,
        of_kept,
        len(projected),
        rows,
        hidden.shape[-2],
        size,
        items=rows,
        operations=2 * run.gates.numel() * size,
    )
    return inputs, (hidden, single, pair), of_bias, of_kept
