"""Sequence to sequence with deep LSTMs."""

from __future__ import annotations

from saccade.decoders import CopyStates, RecurrentDecoder
from saccade.encoders import RecurrentEncoder
from saccade.layers import RecurrentStack, TokenEmbedding, initialisation
from saccade.models.base import EncoderDecoder, models


@models.register("sutskever")
class Sutskever(EncoderDecoder):
    """A deep LSTM reads the source in reverse; another starts from its final states and generates the target.

    Shapes:
        source (batch, length), source_mask bool (batch, length), target_in (batch, steps)
        -> features (batch, steps, hidden_dim). The paper: four layers of 1000 units, embeddings of 1000.

    Reference:
        Sutskever et al. (2014), arXiv:1409.3215.

    Args:
        reversed: reads the source from its last token to its first.
        paper_start: initialises all weights from U(-0.08, 0.08), for plain gradient descent.
    """

    def __init__(
        self,
        *,
        source_vocab: int,
        target_vocab: int,
        embedding_dim: int = 128,
        hidden_dim: int = 256,
        num_layers: int = 2,
        reversed: bool = True,
        dropout: float = 0.0,
        paper_start: bool = False,
    ) -> None:
        encoder = RecurrentEncoder(
            embedding=TokenEmbedding(vocab_size=source_vocab, dim=embedding_dim, dropout=dropout),
            input_dim=embedding_dim,
            hidden_dim=hidden_dim,
            num_layers=num_layers,
            cell="lstm",
            reversed=reversed,
            dropout=dropout,
        )
        stack = RecurrentStack(
            input_dim=embedding_dim, hidden_dim=hidden_dim, num_layers=num_layers, cell="lstm", dropout=dropout
        )
        decoder = RecurrentDecoder(
            embedding=TokenEmbedding(vocab_size=target_vocab, dim=embedding_dim, dropout=dropout),
            stack=stack,
            bridge=CopyStates(),
            dropout=dropout,
        )
        super().__init__(encoder=encoder, decoder=decoder)
        if paper_start:
            initialisation.uniform(self, 0.08)
