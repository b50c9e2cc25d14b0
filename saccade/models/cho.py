"""The RNN encoder-decoder of Cho et al."""

from __future__ import annotations

from saccade.decoders import ChoDecoder
from saccade.encoders import RecurrentEncoder
from saccade.layers import TokenEmbedding, initialisation
from saccade.models.base import EncoderDecoder, models


@models.register("cho")
class Cho(EncoderDecoder):
    """A gated recurrent unit encodes the source into one vector, which the decoder receives at every step.

    Shapes:
        source (batch, length), source_mask bool (batch, length), target_in (batch, steps)
        -> features (batch, steps, maxout_dim). The paper: hidden_dim 1000, embedding_dim 100, maxout_dim 500.

    Reference:
        Cho et al. (2014), arXiv:1406.1078.

    Args:
        output_rank: factorises the output weights into two smaller matrices, as in the paper.
        paper_start: initialises the weights as in the paper, for Adadelta; see `layers.initialisation`.
    """

    def __init__(
        self,
        *,
        source_vocab: int,
        target_vocab: int,
        embedding_dim: int = 128,
        hidden_dim: int = 256,
        maxout_dim: int = 128,
        output_rank: int | None = None,
        dropout: float = 0.0,
        paper_start: bool = False,
    ) -> None:
        encoder = RecurrentEncoder(
            embedding=TokenEmbedding(vocab_size=source_vocab, dim=embedding_dim, dropout=dropout),
            input_dim=embedding_dim,
            hidden_dim=hidden_dim,
            cell="paper_gru",
        )
        decoder = ChoDecoder(
            embedding=TokenEmbedding(vocab_size=target_vocab, dim=embedding_dim, dropout=dropout),
            hidden_dim=hidden_dim,
            summary_dim=hidden_dim,
            maxout_dim=maxout_dim,
            output_rank=output_rank,
            dropout=dropout,
        )
        super().__init__(encoder=encoder, decoder=decoder)
        if paper_start:
            initialisation.normal_and_orthogonal(self)
