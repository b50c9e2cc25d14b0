"""CopyNet: incorporating copying in sequence-to-sequence learning."""

from __future__ import annotations

from functools import partial

from saccade.attention import Attention
from saccade.decoders import CopyNetDecoder
from saccade.encoders import Encoder, RecurrentEncoder
from saccade.layers import TokenEmbedding
from saccade.layers.choices import make_score, make_selection
from saccade.models.base import EncoderDecoder, models
from saccade.scores import Score
from saccade.selections import Selection


@models.register("copynet")
class CopyNet(EncoderDecoder):
    """A bidirectional recurrent encoder, and a decoder that generates and copies words with one softmax.

    Shapes:
        source (batch, length), source_mask bool (batch, length), target_in (batch, steps), words (batch, length) ->
        `Said` with features (batch, steps, hidden_dim). The paper's synthetic data: hidden_dim 300, embedding_dim 150.

    Reference:
        Gu et al. (2016), arXiv:1603.06393.

    Args:
        score, selection: of the attentive read, each a short name or an instance; additive and softmax in the paper.
            The released code's score sees what was read before ("coverage").
        selective_read: reads the states again where the last word may have been copied from.
        readout: whether the vocabulary's scores see context and previous word beside the state, as in the released
            code.
        encoder: any other `Encoder` that keeps one position for each token.
        dropout: applied to embeddings, and to features before the output.
    """

    def __init__(
        self,
        *,
        source_vocab: int,
        target_vocab: int,
        embedding_dim: int = 150,
        hidden_dim: int = 300,
        alignment_dim: int | None = None,
        score: str | Score | partial[Score] = "additive",
        selection: str | Selection | partial[Selection] = "softmax",
        selective_read: bool = True,
        readout: bool = True,
        encoder: Encoder | None = None,
        dropout: float = 0.0,
    ) -> None:
        encoder = encoder or RecurrentEncoder(
            embedding=TokenEmbedding(vocab_size=source_vocab, dim=embedding_dim, dropout=dropout),
            input_dim=embedding_dim,
            hidden_dim=hidden_dim,
            cell="paper_gru",
            bidirectional=True,
        )
        sizes = {"query_dim": hidden_dim, "key_dim": encoder.output_dim, "hidden_dim": alignment_dim or hidden_dim}
        decoder = CopyNetDecoder(
            embedding=TokenEmbedding(vocab_size=target_vocab, dim=embedding_dim, dropout=dropout),
            attention=Attention(score=make_score(score, **sizes), selection=make_selection(selection, **sizes)),
            hidden_dim=hidden_dim,
            context_dim=encoder.output_dim,
            summary_dim=encoder.summary_dim,
            selective_read=selective_read,
            readout=readout,
            dropout=dropout,
        )
        super().__init__(encoder=encoder, decoder=decoder)
