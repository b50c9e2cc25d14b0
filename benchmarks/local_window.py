"""Local attention against attention to all keys: forward and backward of 256 queries on a fixed memory."""

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.harness import Memory, Timing, forward_backward
from saccade import Attention
from saccade.scores import ScaledDotScore
from saccade.selections import LocalP

BATCH, QUERIES, DIM, HALF_WIDTH = 8, 256, 64, 10


def reading(attention: Attention, keys: int) -> Callable[[], object]:
    memory = attention.prepare(torch.randn(BATCH, keys, DIM))
    query = torch.randn(BATCH, QUERIES, DIM, requires_grad=True)

    def read(query: Tensor) -> Tensor:
        return attention.read(query, memory).context

    return forward_backward(read, query, parameters=list(attention.parameters()))


def local() -> Attention:
    return Attention(score=ScaledDotScore(), selection=LocalP(query_dim=DIM, half_width=HALF_WIDTH))


def against_softmax() -> tuple[Callable[[], object], Callable[[], object]]:
    return reading(local(), 4096), reading(Attention(score=ScaledDotScore()), 4096)


def many_keys_against_few() -> tuple[Callable[[], object], Callable[[], object]]:
    return reading(local(), 16384), reading(local(), 1024)


def cases() -> list[Timing | Memory]:
    return [
        Timing(
            "local-p, D=10, B=8, 256 queries over 4,096 keys, d=64",
            "full softmax attention (fused)",
            against_softmax,
            must=10,
        ),
        Memory(
            "local-p, D=10, 16,384 keys: extra peak memory", "itself over 1,024 keys", many_keys_against_few, must=0.9
        ),
    ]
