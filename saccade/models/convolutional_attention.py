"""Convolutional attention: short names for long texts."""

from __future__ import annotations

from saccade.decoders import ConvolutionalAttentionDecoder
from saccade.encoders import EmbeddingEncoder
from saccade.layers import TokenEmbedding
from saccade.models.base import EncoderDecoder, models
from saccade.scores import ConvolutionalScore


@models.register("convolutional_attention")
class ConvolutionalAttention(EncoderDecoder):
    """A decoder that attends to source embeddings through convolutions, and may copy source words.

    Shapes:
        source (batch, length), source_mask bool (batch, length), target_in (batch, steps), with copying words (batch,
        length) -> features (batch, steps, embedding_dim), or `Said` with them. The paper with copying: embedding_dim
        128, first_channels 32, channels 16, widths 18, 19, 2, dropout 0.4; without: 8, 8, widths 24, 29, 10, 0.5.

    Reference:
        Allamanis et al. (2016), arXiv:1602.03001; k_1 and k_2 are `first_channels` and `channels`.

    Args:
        source_vocab, target_vocab: the same: both sides share their embeddings (`joint: yes`).
        copies: whether words of the source can be copied, those outside the vocabulary too.
        widths: of the convolutions, w_1, w_2 and w_3.
        dropout: how often training feeds the context instead of the previous word; also applied to embeddings.
    """

    def __init__(
        self,
        *,
        source_vocab: int,
        target_vocab: int,
        embedding_dim: int = 128,
        first_channels: int = 32,
        channels: int = 16,
        widths: tuple[int, int, int] = (18, 19, 2),
        copies: bool = True,
        dropout: float = 0.4,
    ) -> None:
        if source_vocab != target_vocab:
            raise ValueError(
                f"Source and target share their embeddings, but have {source_vocab} and {target_vocab} tokens: set "
                "task.joint to yes."
            )
        # A word is said by attending to its embedding: without the scale, that would hardly raise its probability.
        embedding = TokenEmbedding(vocab_size=target_vocab, dim=embedding_dim, scale=True, dropout=dropout)
        score = ConvolutionalScore(query_dim=channels, key_dim=embedding_dim, hidden_dim=first_channels, widths=widths)
        decoder = ConvolutionalAttentionDecoder(
            embedding=embedding,
            score=score,
            dim=embedding_dim,
            copies=copies,
            dropout=dropout,
        )
        super().__init__(encoder=EmbeddingEncoder(embedding=embedding, dim=embedding_dim), decoder=decoder)
