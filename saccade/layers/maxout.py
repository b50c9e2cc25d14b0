"""Maxout."""

import functools

import torch
from torch import Tensor, nn

from saccade.checks import check_count


class Maxout(nn.Module):
    r"""The largest of several linear units.

    .. math:: y_k = \max_{1 \le m \le p} (W x + b)_{p(k - 1) + m}

    p is `pieces`.

    Shapes:
        (*, input_dim) -> (*, output_dim).

    Reference:
        Goodfellow et al. (2013), arXiv:1302.4389; in readouts since Cho et al. (2014), arXiv:1406.1078, appendix A.
    """

    def __init__(self, *, input_dim: int, output_dim: int, pieces: int = 2) -> None:
        super().__init__()
        check_count("pieces", pieces)
        self.pieces = pieces
        self.output_dim = output_dim
        self.proj = nn.Linear(input_dim, pieces * output_dim)
        nn.init.xavier_uniform_(self.proj.weight)
        nn.init.zeros_(self.proj.bias)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.largest(self.proj(inputs))

    def largest(self, units: Tensor) -> Tensor:
        """The largest of each group of `pieces` units (*, pieces * output_dim)."""
        largest: Tensor = functools.reduce(torch.maximum, units.unflatten(-1, (-1, self.pieces)).unbind(-1))
        return largest
