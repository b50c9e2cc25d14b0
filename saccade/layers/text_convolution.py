"""Convolutions over words with max pooling."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.checks import check_count


class TextConvolution(nn.Module):
    r"""The largest value that each filter has anywhere in a text.

    .. math:: c_f = \max_t \phi(W_f x_{t:t+w} + b_f)

    Windows reach beyond the end of the text, where they see zeros, but all begin in it. A text without words gives
    zeros.

    Shapes:
        words (batch, length, input_dim), mask bool (batch, length), padding last
        -> (batch, len(widths) * filters).

    Reference:
        Kim (2014), arXiv:1408.5882, section 2.

    Args:
        input_dim: features of a word.
        filters: how many filters each width has.
        widths: of the windows, in words.
        activation: phi.
    """

    def __init__(
        self,
        *,
        input_dim: int,
        filters: int,
        widths: Sequence[int] = (3,),
        activation: Callable[[Tensor], Tensor] = torch.relu,
    ) -> None:
        super().__init__()
        check_count("filters", filters)
        for width in widths:
            check_count("widths", width)
        self.convolutions = nn.ModuleList(nn.Conv1d(input_dim, filters, width) for width in widths)
        self.widths = tuple(widths)
        self.activation = activation
        self.output_dim = len(self.widths) * filters

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        if not words.shape[1]:
            return words.new_zeros(len(words), self.output_dim)
        columns = (words * mask.unsqueeze(-1)).transpose(1, 2)
        found = []
        for width, convolution in zip(self.widths, self.convolutions, strict=True):
            features = self.activation(convolution(F.pad(columns, (0, width - 1))))
            features = features.masked_fill(~mask.unsqueeze(1), torch.finfo(features.dtype).min)
            found.append(features.amax(2))
        return torch.cat(found, dim=1).masked_fill(~mask.any(1, keepdim=True), 0.0)
