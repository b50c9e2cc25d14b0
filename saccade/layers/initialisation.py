"""How the papers start their weights, where that differs from this library's own start.

The library's own: recurrent weights orthogonal, other matrices Glorot, biases zero but for an LSTM's forget gate,
which starts at one. That learns in fewer steps with Adam than what the papers used with their optimisers.
"""

from __future__ import annotations

import torch
from torch import nn

from saccade.layers.cell import Cell


@torch.no_grad()
def uniform(module: nn.Module, bound: float) -> None:
    """Every parameter from U(-bound, bound), as Sutskever et al. (2014) and Luong et al. (2015) do."""
    for parameter in module.parameters():
        parameter.uniform_(-bound, bound)


@torch.no_grad()
def normal_and_orthogonal(module: nn.Module, std: float = 0.01) -> None:
    """Recurrent weights orthogonal, other weights from N(0, std²), biases zero, as Cho et al. (2014) do."""
    for parameter in module.parameters():
        if parameter.dim() > 1:
            parameter.normal_(0.0, std)
        else:
            parameter.zero_()
    for part in module.modules():
        if isinstance(part, Cell):
            part.reset_parameters()
