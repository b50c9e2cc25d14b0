"""Additive scores against the usual broadcast implementation."""

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.harness import Memory, Timing
from saccade.kernels.additive import additive_scores


def broadcast(query: Tensor, keys: Tensor, vector: Tensor) -> Tensor:
    return (vector * torch.tanh(query[:, :, None] + keys[:, None])).sum(-1)


def build() -> tuple[Callable[[], object], Callable[[], object]]:
    shapes = ((8, 256, 256), (8, 256, 256), (256,))
    inputs = [torch.randn(shape, requires_grad=True) for shape in shapes]
    direction = torch.randn(8, 256, 256)

    def run(function: Callable[..., Tensor]) -> Callable[[], object]:
        return lambda: torch.autograd.grad(function(*inputs), inputs, direction)

    return run(additive_scores), run(broadcast)


def cases() -> list[Timing | Memory]:
    what, against = "additive scores, B=8, T=S=256, hidden 256", "v tanh(q[:, :, None] + k[:, None])"
    return [
        Timing(what, against, build, must=5, aim=12),
        Memory(f"{what}: extra peak memory", against, build, must=20),
    ]
