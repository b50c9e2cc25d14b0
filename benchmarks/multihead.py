"""Multi-head self-attention against PyTorch's."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.harness import Timing, forward_backward
from saccade import Attention, MultiHead
from saccade.scores import ScaledDotScore

BATCH, LENGTH, DIM, HEADS = 16, 256, 256, 4


def build() -> tuple[Callable[[], object], Callable[[], object]]:
    ours = MultiHead(attention=Attention(score=ScaledDotScore()), num_heads=HEADS, query_dim=DIM)
    peer = nn.MultiheadAttention(DIM, HEADS, batch_first=True)
    x = torch.randn(BATCH, LENGTH, DIM, requires_grad=True)

    def read(x: Tensor) -> Tensor:
        return ours(x).context

    def attend(x: Tensor) -> Tensor:
        return peer(x, x, x, need_weights=False)[0]

    return (
        forward_backward(read, x, parameters=list(ours.parameters())),
        forward_backward(attend, x, parameters=list(peer.parameters())),
    )


def cases() -> list[Timing]:
    against = "nn.MultiheadAttention(need_weights=False)"
    return [Timing("MultiHead scaled dot, B=16, T=256, d=256, h=4", against, build, must=1, aim=1.2)]
