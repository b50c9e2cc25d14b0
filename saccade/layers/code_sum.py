"""Sets of codes as vectors."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.kernels.modes import exporting


class CodeSum(nn.Module):
    r"""The sum of the vectors of codes, each times its amount: a multi-hot vector times a matrix.

    .. math:: v = \sum_k x_k E_k

    Without codes it is zero.

    Shapes:
        codes (*batch, codes), 0 = padding, amounts (*batch, codes) -> (*batch, dim).

    Args:
        vocab: the number of codes, including padding.
        dim: features of a vector.
        deviation: of the initial vectors; 0 starts with zeros.
    """

    def __init__(self, *, vocab: int, dim: int, deviation: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab, dim))
        nn.init.normal_(self.weight, std=deviation)

    def forward(self, codes: Tensor, amounts: Tensor) -> Tensor:
        if exporting():  # ONNX has no weighted bags
            return self.each(codes, amounts).sum(-2)
        flat: Tensor = F.embedding_bag(
            codes.flatten(0, -2),
            self.weight,
            per_sample_weights=amounts.flatten(0, -2).to(self.weight.dtype),
            mode="sum",
            padding_idx=0,
        )
        return flat.view(*codes.shape[:-1], flat.shape[-1])

    def each(self, codes: Tensor, amounts: Tensor) -> Tensor:
        """(*batch, codes, dim): the terms of the sum."""
        real = (codes != 0).unsqueeze(-1)
        return torch.where(real, F.embedding(codes, self.weight) * amounts.unsqueeze(-1), 0.0)
