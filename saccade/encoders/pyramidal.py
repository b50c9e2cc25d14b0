"""Pyramidal recurrent encoder."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.checks import check_count
from saccade.encoders.base import Encoder, EncoderOutput, encoders
from saccade.layers import MaskedEmbedding, RecurrentLayer
from saccade.layers.embedding import stack_frames
from saccade.layers.recurrent import CellName


class Frames(MaskedEmbedding):
    """Feature vectors as they are, with zeros for padding."""

    def __init__(self, *, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, source: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        if source.dim() != 3 or source.shape[-1] != self.dim or not source.is_floating_point():
            raise ValueError(
                f"source must be floating point, (batch, length, {self.dim}), got {source.dtype} of shape "
                f"{tuple(source.shape)}."
            )
        return torch.where(mask.unsqueeze(-1), source, 0.0), mask


@encoders.register("pyramidal")
class PyramidalEncoder(Encoder):
    r"""Recurrent layers, each reading groups of neighbouring states of the layer below as one: the listener of LAS.

    .. math:: h^0 = \mathrm{BLSTM}(x), \qquad
        h^l_i = \mathrm{BLSTM}\big(h^l_{i-1}, [h^{l-1}_{ri}; \dots; h^{l-1}_{ri + r - 1}]\big)

    r is the factor of layer l. With three layers above the first and r = 2 there are an eighth as many states as
    frames, so that attention has fewer places to choose from and most layers fewer steps to compute. If a length is not
    a multiple of r, zeros are added at the end.

    Shapes:
        source (batch, length, input_dim), mask bool (batch, length) -> states (batch, ceil(length / stride),
        output_dim); summary: (h,) of each layer, its last outputs (batch, output_dim), forward then backward.

    Reference:
        Chan et al. (2015), arXiv:1508.01211, section 3.1.

    Args:
        input_dim: features of a frame, or of the embeddings.
        hidden_dim: features of one direction.
        factors: for each layer above the first, how many states below become one; 1 keeps their number.
        cell: "gru", "paper_gru", "lstm" or "rcnn".
        bidirectional: reads forwards and backwards, which doubles the features.
        dropout: applied between layers.
        embedding: source -> (batch, length, input_dim); by default the source is read as it is.
    """

    def __init__(
        self,
        *,
        input_dim: int,
        hidden_dim: int,
        factors: Sequence[int] = (2, 2, 2),
        cell: CellName = "lstm",
        bidirectional: bool = True,
        dropout: float = 0.0,
        embedding: nn.Module | None = None,
    ) -> None:
        super().__init__()
        for factor in factors:
            check_count("factors", factor)
        if not 0.0 <= dropout < 1.0:
            raise ValueError(f"dropout must be from 0 to less than 1, got {dropout}.")
        self.embedding = Frames(dim=input_dim) if embedding is None else embedding
        self.output_dim = self.summary_dim = hidden_dim * (2 if bidirectional else 1)
        self.layers = nn.ModuleList(
            RecurrentLayer(
                input_dim=factor * self.output_dim if factor else input_dim,
                hidden_dim=hidden_dim,
                cell=cell,
                bidirectional=bidirectional,
            )
            for factor in (0, *factors)
        )
        self.factors = tuple(factors)
        self.dropout = dropout

    @property
    def stride(self) -> int:
        return super().stride * math.prod(self.factors)

    def forward(self, source: Tensor, mask: Tensor) -> EncoderOutput:
        states, mask = self.embed(source, mask)
        summary = []
        for factor, layer in zip((0, *self.factors), self.layers, strict=True):
            if factor:
                states, mask = stack_frames(F.dropout(states, self.dropout, self.training), mask, factor)
            states, final = cast(RecurrentLayer, layer).outputs(states, mask)
            summary.append((final,))
        return EncoderOutput(states, mask, tuple(summary))
