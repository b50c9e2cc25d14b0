"""Common base of models in which each target word comes from one source position."""

from __future__ import annotations

from torch import Tensor

from saccade.checks import check_count
from saccade.decoders import AlignedDecoder, LearnedStart, Transitions
from saccade.distributions.alignment import AlignmentPosterior
from saccade.encoders import RecurrentEncoder
from saccade.layers import RecurrentStack, TokenEmbedding
from saccade.layers.recurrent import CellName
from saccade.models.base import EncoderDecoder


class AlignedModel(EncoderDecoder):
    """A recurrent encoder and an `AlignedDecoder` that sums over all alignments to its states.

    Args:
        transitions: for keys of `context_dim(hidden_dim, online)`.
        online: the encoder reads forwards only, the decoder gets no summary of the source, and evaluation moves to one
            position at a time.
    """

    decoder: AlignedDecoder

    def __init__(
        self,
        *,
        source_vocab: int,
        target_vocab: int,
        embedding_dim: int,
        hidden_dim: int,
        encoder_layers: int,
        decoder_layers: int,
        transitions: Transitions,
        cell: CellName,
        online: bool,
        dropout: float,
    ) -> None:
        encoder = RecurrentEncoder(
            embedding=TokenEmbedding(vocab_size=source_vocab, dim=embedding_dim, dropout=dropout),
            input_dim=embedding_dim,
            hidden_dim=hidden_dim,
            num_layers=encoder_layers,
            cell=cell,
            bidirectional=not online,
            dropout=dropout,
        )
        stack = RecurrentStack(
            input_dim=embedding_dim, hidden_dim=hidden_dim, num_layers=decoder_layers, cell=cell, dropout=dropout
        )
        decoder = AlignedDecoder(
            embedding=TokenEmbedding(vocab_size=target_vocab, dim=embedding_dim, dropout=dropout),
            stack=stack,
            transitions=transitions,
            bridge=LearnedStart(hidden_dim=hidden_dim, num_layers=decoder_layers, num_states=stack.num_states),
            input_dim=embedding_dim,
            context_dim=encoder.output_dim,
            readout_dim=hidden_dim,
            online=online,
            dropout=dropout,
        )
        super().__init__(encoder=encoder, decoder=decoder)

    @property
    def online(self) -> bool:
        """Whether evaluation reads from left to right, no further than necessary."""
        return self.decoder.online

    def alignment(
        self, source: Tensor, source_mask: Tensor, target_in: Tensor, target: Tensor, target_mask: Tensor
    ) -> AlignmentPosterior:
        """The distribution over alignments of targets (batch, steps); tasks maximise its `log_likelihood` (batch,).

        target_in is the start token followed by the target without its last token; masks are bool, True = real.
        """
        return self.decoder.alignment(self.encode(source, source_mask), target_in, target, target_mask)


def context_dim(hidden_dim: int, online: bool) -> int:
    """Features of the encoder's states."""
    check_count("hidden_dim", hidden_dim)
    return hidden_dim if online else 2 * hidden_dim
