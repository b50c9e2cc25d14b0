"""Transformer encoder."""

from collections.abc import Sequence

from torch import Tensor, nn

from saccade.encoders.base import Encoder, EncoderOutput, mean_of_real
from saccade.layers import TransformerEncoderLayer


class TransformerEncoder(Encoder):
    """Transformer layers over embeddings.

    Shapes:
        source (batch, length), mask bool (batch, length) -> states (batch, length, dim), summary (batch, dim), the
        mean of the states.

    Reference:
        Vaswani et al. (2017), arXiv:1706.03762, section 3.1.

    Args:
        embedding: source -> (batch, length, dim).
        layers: the layers, in order; the first reads the embeddings.
        dim: features of embeddings and states.
        final_norm: normalises the states, as needed with pre-norm layers.
    """

    def __init__(
        self, *, embedding: nn.Module, layers: Sequence[TransformerEncoderLayer], dim: int, final_norm: bool = True
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.layers = nn.ModuleList(layers)
        self.final_norm = nn.LayerNorm(dim) if final_norm else nn.Identity()
        self.output_dim = self.summary_dim = dim

    def forward(self, source: Tensor, mask: Tensor) -> EncoderOutput:
        states, mask = self.embed(source, mask)
        for layer in self.layers:
            states = layer(states, mask.unsqueeze(1))
        states = self.final_norm(states)
        return EncoderOutput(states, mask, mean_of_real(states, mask))
