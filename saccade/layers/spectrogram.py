"""Convolutions over the time and frequency of a sound."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.checks import check_count
from saccade.layers.embedding import MaskedEmbedding


class SpectrogramEmbedding(MaskedEmbedding):
    r"""Two convolutions over time and frequency, each of which halves both, and a projection.

    .. math:: u = \operatorname{relu}(K_1 * f), \quad v = \operatorname{relu}(K_2 * u), \quad x_t = W v_t + b

    The kernels are 3 x 3, so that a filter finds the same pattern in a higher and in a lower voice. Padding, whatever
    it contains, counts as zeros; a position is real if the frame in its middle is.

    Shapes:
        features (batch, length, input_dim), mask bool (batch, length), padding last
        -> (batch, ceil(length / 4), dim) and its mask.

    Reference:
        Before a recurrent encoder: Amodei et al. (2016), Deep Speech 2, arXiv:1512.02595, section 3.5.

    Args:
        input_dim: features of a frame, such as mel bands, in the order of their frequencies.
        filters: of each convolution.
        dim: features of a position.
        dropout: applied to the positions.
    """

    stride = 4

    def __init__(self, *, input_dim: int, filters: int, dim: int, dropout: float = 0.0) -> None:
        super().__init__()
        for name, count in (("input_dim", input_dim), ("filters", filters), ("dim", dim)):
            check_count(name, count)
        if not 0.0 <= dropout < 1.0:
            raise ValueError(f"dropout must be from 0 to less than 1, got {dropout}.")
        self.input_dim = input_dim
        self.convolutions = nn.ModuleList(
            nn.Conv2d(inputs, filters, kernel_size=3, stride=2, padding=1) for inputs in (1, filters)
        )
        self.proj = nn.Linear(-(-input_dim // self.stride) * filters, dim)
        for part in (*self.convolutions, self.proj):
            nn.init.kaiming_uniform_(cast(Tensor, part.weight), nonlinearity="relu")
            nn.init.zeros_(cast(Tensor, part.bias))
        self.dropout = dropout

    def forward(self, source: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        if source.dim() != 3 or source.shape[-1] != self.input_dim or not source.is_floating_point():
            raise ValueError(
                f"source must be floating point, (batch, length, {self.input_dim}), got {source.dtype} of shape "
                f"{tuple(source.shape)}: build the model with source_dim={source.shape[-1]} for this source."
            )
        found = source.to(self.proj.weight.dtype).unsqueeze(1)
        for convolution in self.convolutions:
            found = torch.where(mask[:, None, :, None], found, 0.0)
            found, mask = convolution(found).relu(), mask[:, ::2]
        embedded: Tensor = self.proj(found.transpose(1, 2).flatten(2))
        return F.dropout(embedded, self.dropout, self.training), mask
