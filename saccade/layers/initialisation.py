"""The papers' weight initialisations, where they differ from the library's default.

By default recurrent weights are orthogonal, other matrices Glorot, and biases zero except an LSTM's forget gate, which
starts at one. With Adam this learns in fewer steps than the papers' initialisations with their optimisers.
"""

from __future__ import annotations

import torch
from torch import nn

from saccade.layers.cell import RecurrentCell


@torch.no_grad()
def uniform(module: nn.Module, bound: float) -> None:
    """Every parameter from U(-bound, bound), as in Sutskever et al. (2014) and Luong et al. (2015)."""
    for parameter in module.parameters():
        parameter.uniform_(-bound, bound)


@torch.no_grad()
def normal_and_orthogonal(module: nn.Module, std: float = 0.01) -> None:
    """Recurrent weights orthogonal, other weights from N(0, std²), biases zero, as in Cho et al. (2014)."""
    for parameter in module.parameters():
        if parameter.dim() > 1:
            parameter.normal_(0.0, std)
        else:
            parameter.zero_()
    for part in module.modules():
        if isinstance(part, RecurrentCell):
            part.reset_parameters()


@torch.no_grad()
def truncated_normal(module: nn.Module, std: float) -> None:
    """Matrices from N(0, std²) truncated at two standard deviations, biases zero, as in Devlin et al. (2019)."""
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.trunc_normal_(part.weight, std=std, a=-2 * std, b=2 * std)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)
