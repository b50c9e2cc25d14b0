"""Factorisation machines."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from saccade.checks import check_count


class FactorisationMachine(nn.Module):
    r"""Weighs all features and all products of two features, whose weights are inner products of factors.

    .. math:: y = w_0 + \sum_i w_i x_i + \sum_{i < j} \langle v_i, v_j \rangle x_i x_j
        = w_0 + w^\top x + \tfrac12 \sum_f \big[ (V^\top x)_f^2 - ((V \odot V)^\top (x \odot x))_f \big]

    Shapes:
        x (*batch, dim) -> y (*batch, 1).

    Reference:
        Rendle (2010), "Factorization machines", equations 1 and 5; k is `factors`.

    Args:
        dim: features.
        factors: the number of factors of each feature.
    """

    def __init__(self, *, dim: int, factors: int = 10) -> None:
        super().__init__()
        check_count("factors", factors)
        self.linear = nn.Linear(dim, 1)
        self.factors = nn.Parameter(torch.empty(dim, factors))
        nn.init.normal_(self.factors, std=0.01)

    def forward(self, x: Tensor) -> Tensor:
        products = (x @ self.factors).square() - x.square() @ self.factors.square()
        y: Tensor = self.linear(x) + 0.5 * products.sum(-1, keepdim=True)
        return y
