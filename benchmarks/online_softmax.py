"""Softmax over any score in blocks of keys against all scores at once: peak memory of forward and backward."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.harness import Measurement, Memory, extra_megabytes, forward_backward
from saccade import Attention
from saccade.scores import AdditiveScore

DIM = 32


def reading(length: int, block_size: int | None) -> Callable[[], object]:
    score = AdditiveScore(query_dim=DIM, key_dim=DIM, hidden_dim=DIM)
    attention = Attention(score=score, block_size=block_size)
    query, keys = (torch.randn(1, length, DIM, requires_grad=True) for _ in range(2))

    def read(query: Tensor, keys: Tensor) -> Tensor:
        return attention(query, keys).context

    return forward_backward(read, query, keys, parameters=list(attention.parameters()))


def against_plain() -> tuple[Callable[[], object], Callable[[], object]]:
    return reading(4096, 256), reading(4096, None)


def length_doubled() -> tuple[Callable[[], object], Callable[[], object]]:
    return reading(8192, 256), reading(4096, 256)


@dataclass(frozen=True)
class LinearGrowth:
    """Twice the memory at half the length, divided by that at full length: 1 if linear, 1/2 if quadratic."""

    what: str
    against: str
    must: float
    aim: float | None = None

    def measure(self, repeats: int) -> Measurement:
        full, half = (extra_megabytes(length_doubled, side) for side in (0, 1))
        return Measurement(2 * half / full, full, 2 * half, "MB")


def cases() -> list[Memory | LinearGrowth]:
    what = "additive + softmax in blocks of 256 keys"
    return [
        Memory(f"{what}, T=S=4,096: extra peak memory", "all scores at once", against_plain, must=1),
        LinearGrowth(f"{what}, T=S=8,192: extra peak memory", "twice itself at 4,096", must=0.9),
    ]
