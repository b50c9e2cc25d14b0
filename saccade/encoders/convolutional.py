"""Convolutional encoder."""

from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F

from saccade.encoders.base import Encoder, EncoderOutput, mean_of_real
from saccade.layers import ConvolutionBlock


class ConvolutionalEncoder(Encoder):
    """Convolutional layers over the embeddings, without pooling: each position sees its neighbours.

    Shapes:
        source (batch, length), mask bool (batch, length) -> states (batch, length, dim), summary (batch, dim), the
        mean of the states.

    Reference:
        Gehring et al. (2017), arXiv:1611.02344.

    Args:
        embedding: source -> (batch, length, dim).
        dim: features of the embeddings and of the states.
        num_layers, kernel_size: a state sees num_layers * (kernel_size - 1) / 2 neighbours on each side.
        activation: the activation of each `ConvolutionBlock`.
        dropout: applied before each layer.
    """

    def __init__(
        self,
        *,
        embedding: nn.Module,
        dim: int,
        num_layers: int = 3,
        kernel_size: int = 3,
        activation: Literal["tanh", "relu", "glu"] = "tanh",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.blocks = nn.ModuleList(
            ConvolutionBlock(dim=dim, kernel_size=kernel_size, activation=activation) for _ in range(num_layers)
        )
        self.dropout = dropout
        self.output_dim = self.summary_dim = dim

    def forward(self, source: Tensor, mask: Tensor) -> EncoderOutput:
        states, mask = self.embed(source, mask)
        for block in self.blocks:
            states = block(F.dropout(states, self.dropout, self.training), mask)
        return EncoderOutput(states, mask, mean_of_real(states, mask))
