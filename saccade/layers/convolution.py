"""Convolution over padded sequences."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.registry import nearest


class ConvolutionBlock(nn.Module):
    r"""A length-preserving convolution with a residual connection; padding counts as zeros.

    .. math:: y = x + f(W * x + b)

    f is tanh, relu, or the gated linear unit a * sigmoid(b) of a convolution with twice the channels.

    Shapes:
        inputs (batch, length, dim), mask bool (batch, length) -> (batch, length, dim), zero on padding.

    Reference:
        Gehring et al. (2017), arXiv:1611.02344 (tanh) and arXiv:1705.03122 (gated).
    """

    def __init__(self, *, dim: int, kernel_size: int = 3, activation: Literal["tanh", "relu", "glu"] = "tanh") -> None:
        super().__init__()
        if kernel_size < 1 or kernel_size % 2 == 0:
            raise ValueError(f"kernel_size must be odd, so that the window is centred, got {kernel_size}.")
        if activation not in ("tanh", "relu", "glu"):
            raise ValueError(f"Unknown activation {activation!r}.{nearest(activation, ('tanh', 'relu', 'glu'))}")
        self.activation = activation
        channels = 2 * dim if activation == "glu" else dim
        self.convolution = nn.Conv1d(dim, channels, kernel_size, padding=kernel_size // 2)

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        real = mask.unsqueeze(-1)
        inputs = inputs * real
        if not inputs.shape[1]:  # PyTorch's convolution rejects an empty sequence
            return inputs
        convolved = self.convolution(inputs.transpose(1, 2)).transpose(1, 2)
        if self.activation == "glu":
            changed = F.glu(convolved, dim=-1)
        else:
            changed = torch.tanh(convolved) if self.activation == "tanh" else F.relu(convolved)
        return (inputs + changed) * real
