"""Embedding encoder."""

from torch import Tensor, nn

from saccade.encoders.base import Encoder, EncoderOutput, mean_of_real


class EmbeddingEncoder(Encoder):
    """The embeddings themselves: word order is lost unless they include positions.

    Shapes:
        source (batch, length), mask bool (batch, length) -> states (batch, length, dim), summary (batch, dim), the
        mean of the states.

    Args:
        embedding: source -> (batch, length, dim).
        dim: features of the embeddings.
    """

    def __init__(self, *, embedding: nn.Module, dim: int) -> None:
        super().__init__()
        self.embedding = embedding
        self.output_dim = self.summary_dim = dim

    def forward(self, source: Tensor, mask: Tensor) -> EncoderOutput:
        states, mask = self.embed(source, mask)
        return EncoderOutput(states, mask, mean_of_real(states, mask))
